"""Drafted tokens are drawn as the model's.

With the same parameters and the same random numbers, so that where both agree, so do the draws. Penalties, bans and
grammars are left to the model.
"""

import msgspec
import numpy as np

from ouzel.engine.sampling.draws import Draw
from ouzel.engine.sampling.sampler import choose_tokens
from ouzel.engine.state.columns import Row
from ouzel.engine.state.sequence import Sequence
from ouzel.sampling import SamplingParams

Drafted = dict[Sequence, list[int]]  # what was drafted for each so far


class Want(msgspec.Struct, frozen=True):
    """A sequence, which has blocks for it, wants so many tokens drafted."""

    sequence: Sequence
    num_tokens: int


class _Draw(msgspec.Struct, frozen=True):
    params: SamplingParams
    index: int
    num_output_tokens: int


def draw_drafts(wants: list[Want], rows: list[Row], drafts: Drafted) -> list[Want]:
    """Adds a token of each row to the drafts, if that is as sure as is asked for; returns those that want more."""
    draws: list[Draw] = [
        _Draw(each.params, each.index, each.num_output_tokens + len(drafts[each]))
        for each in (want.sequence for want in wants)
    ]
    going_on = []
    for want, row, token_id in zip(wants, rows, choose_tokens(rows, draws), strict=True):
        if token_id is None or not _is_sure(want.sequence, row, token_id):
            continue
        drafts[want.sequence].append(token_id)
        if len(drafts[want.sequence]) < want.num_tokens:
            going_on.append(want)
    return going_on


def _is_sure(sequence: Sequence, row: Row, token_id: int) -> bool:
    threshold = sequence.request.speculation.confidence_threshold
    if threshold is None:
        return True
    return bool(threshold * np.exp(row - row[token_id]).sum() <= 1.0)
