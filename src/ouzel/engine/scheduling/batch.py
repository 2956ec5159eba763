"""A runner takes what is scheduled as flat arrays."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import ForwardBatch
from ouzel.engine.flat_batch import build_flat_batch, prefix_sums
from ouzel.engine.scheduling.image_encoder import ImageEncoder
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.state.row_kinds import goes_apart
from ouzel.engine.state.sequence import Sequence


class _Piece(msgspec.Struct, frozen=True):
    """Tokens of a sequence that follow one another, and see the ones before them in the cache."""

    sequence: Sequence
    begin: int
    token_ids: list[int]

    @property
    def end(self) -> int:
        return self.begin + len(self.token_ids)


def build_batch(
    scheduled: list[Scheduled],
    block_size: int,
    images: ImageEncoder | None = None,
    *,
    has_states: bool = False,
) -> ForwardBatch:
    """Puts all scheduled tokens one after the other, and behind those of a sequence what it proposes.

    The rows whose logits it asks for are first those of the sequences whose last token is computed, to sample from,
    and of the tokens that they propose; then the scored ones.

    A proposed token can be a subsequence of its own over the same blocks, as attention writes all keys and values
    before it reads. Which costs less, that or one subsequence for all, the sequence knows (`proposals`); where rows
    have kinds, the kind decides (`row_kinds`).
    """
    pieces = list(chain.from_iterable(_pieces(entry) for entry in scheduled))
    begins = prefix_sums(np.array(list(map(_num_rows, scheduled)), dtype=np.int32))
    image_rows, image_features = _image_rows(scheduled, begins, images)
    batch = build_flat_batch(
        [(piece.sequence.block_table, piece.begin, piece.token_ids) for piece in pieces],
        np.concatenate([_sampled_rows(scheduled, begins), *_scored_rows(scheduled, begins)]),
        block_size,
    )
    return replace(
        batch,
        positions=_grid_positions(pieces, batch.positions, batch.subsequence_begins),
        state_slots=np.array(list(map(_slots, scheduled)), dtype=np.int32) if has_states else None,
        image_rows=image_rows,
        image_features=image_features,
        adapter_slots=_adapter_slots(scheduled),
    )


def split_logits(
    scheduled: list[Scheduled], logits: NDArray[np.float32]
) -> tuple[list[tuple[Sequence, NDArray[np.float32]]], NDArray[np.float32]]:
    """Returns the rows to sample from of each sequence, and the scored ones, of a batch made by `build_batch`."""
    sampled, begin = [], 0
    for entry in scheduled:
        if entry.completes_prompt:
            end = begin + 1 + len(entry.sequence.proposal)
            sampled.append((entry.sequence, logits[begin:end]))
            begin = end
    return sampled, logits[begin:]


def _num_rows(entry: Scheduled) -> int:
    return entry.num_new_tokens + len(entry.sequence.proposal)


def _pieces(entry: Scheduled) -> Iterator[_Piece]:
    """Gives all tokens together, or each by itself: a piece of several and others behind it would come out wrong."""
    sequence, begin = entry.sequence, entry.sequence.num_computed_tokens
    token_ids = [*sequence.token_ids[begin : begin + entry.num_new_tokens], *sequence.proposal]
    if goes_apart(sequence) or (
        sequence.proposal and sequence.is_apart and not sequence.keeps_kinds
    ):
        for place, token_id in enumerate(token_ids, start=begin):
            yield _Piece(sequence, place, [token_id])
    else:
        yield _Piece(sequence, begin, token_ids)


def _adapter_slots(scheduled: list[Scheduled]) -> NDArray[np.int32] | None:
    """Returns the slot of each row's adapter, proposed tokens' rows included; None where no sequence has one."""
    adapters = [entry.sequence.adapter for entry in scheduled]
    if not any(adapters):
        return None
    slots = np.array(
        [-1 if adapter is None else adapter.slot for adapter in adapters], dtype=np.int32
    )
    return np.repeat(slots, list(map(_num_rows, scheduled)))


def _slots(entry: Scheduled) -> tuple[int, int]:
    return entry.sequence.state_slot, entry.sequence.next_state_slot


def _sampled_rows(scheduled: list[Scheduled], begins: NDArray[np.int32]) -> NDArray[np.int64]:
    """Returns the last row of those that complete their prompts, and the rows of what they propose."""
    ends = begins[1:].tolist()
    rows = (
        range(end - 1 - len(entry.sequence.proposal), end)
        for entry, end in zip(scheduled, ends, strict=True)
        if entry.completes_prompt
    )
    return np.array(list(chain.from_iterable(rows)), dtype=np.int64)


def _scored_rows(
    scheduled: list[Scheduled], begins: NDArray[np.int32]
) -> Iterator[NDArray[np.int64]]:
    for entry, begin in zip(scheduled, begins.tolist(), strict=False):
        if entry.scored_rows:
            yield (
                np.array(entry.scored_rows, dtype=np.int64)
                - entry.sequence.num_computed_tokens
                + begin
            )


def _image_rows(
    scheduled: list[Scheduled], begins: NDArray[np.int32], images: ImageEncoder | None
) -> tuple[NDArray[np.int64] | None, NDArray[np.float32] | None]:
    """Returns the rows that stand for images, and the features for them."""
    rows, features = list[NDArray[np.int64]](), list[NDArray[np.float32]]()
    for entry, begin in zip(scheduled, begins.tolist(), strict=False):
        own = entry.sequence.images
        if own is None or images is None:
            continue
        past = entry.sequence.num_computed_tokens
        for number, tokens, rows_of_image in own.rows_between(past, past + entry.num_new_tokens):
            rows.append(tokens - past + begin)
            features.append(
                images.features(entry.sequence, own.images[number]).take(rows_of_image, axis=1)
            )
    return (np.concatenate(rows), np.concatenate(features, axis=1)) if rows else (None, None)


def _grid_positions(
    pieces: list[_Piece], positions: NDArray[np.int64], begins: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Gives each token three positions where an image has a grid of them."""
    grids = positions
    for piece, begin in zip(pieces, begins.tolist(), strict=False):
        images = piece.sequence.images
        own = None if images is None else images.positions(piece.begin, piece.end)
        if own is not None:
            if grids is positions:
                grids = np.repeat(positions[None], 3, axis=0)
            grids[:, begin : begin + len(piece.token_ids)] = own
    return grids
