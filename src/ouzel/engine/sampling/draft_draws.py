"""Draws drafted tokens by the rules for the model's own tokens.

The parameters and random numbers are the same, so equal distributions give equal draws. Penalties,
bans and grammars apply only to the model's tokens.
"""

import msgspec
import numpy as np

from ouzel.engine.sampling.draws import Draw
from ouzel.engine.sampling.sampler import choose_tokens
from ouzel.engine.state.columns import Row
from ouzel.engine.state.sequence import Sequence
from ouzel.sampling import SamplingParams

DraftTokens = dict[Sequence, list[int]]  # drafted tokens by sequence


class DraftRequest(msgspec.Struct, frozen=True):
    """A request for up to `num_tokens` drafted tokens; the sequence has blocks for them."""

    sequence: Sequence
    num_tokens: int


class _Draw(msgspec.Struct, frozen=True):
    """The parameters, choice and position of a draw."""

    params: SamplingParams
    index: int
    num_output_tokens: int


def draw_drafts(
    requests: list[DraftRequest], rows: list[Row], drafts: DraftTokens
) -> list[DraftRequest]:
    """Draws a token from each row and appends it to the drafts; returns the requests that want
    more.

    A token below the request's confidence threshold is dropped and ends the draft.
    """
    draws: list[Draw] = [
        _Draw(each.params, each.index, each.num_output_tokens + len(drafts[each]))
        for each in (request.sequence for request in requests)
    ]
    continuing = []
    for request, row, token_id in zip(requests, rows, choose_tokens(rows, draws), strict=True):
        if token_id is None or not _is_sure(request.sequence, row, token_id):
            continue
        drafts[request.sequence].append(token_id)
        if len(drafts[request.sequence]) < request.num_tokens:
            continuing.append(request)
    return continuing


def _is_sure(sequence: Sequence, row: Row, token_id: int) -> bool:
    threshold = sequence.request.speculation.confidence_threshold
    if threshold is None:
        return True
    return bool(threshold * np.exp(row - row[token_id]).sum() <= 1.0)
