"""Builds the input of a forward pass from the scheduled sequences."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import ForwardBatch
from ouzel.engine.flat_batch import build_flat_batch, prefix_sums
from ouzel.engine.scheduling.audio_encoder import AudioEncoder
from ouzel.engine.scheduling.batch_images import TokenRows, find_image_rows, place_in_grids
from ouzel.engine.scheduling.image_encoder import NO_IMAGES, ImageEncoder, NoImages
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.state.row_kinds import goes_apart
from ouzel.engine.state.sequence import Sequence
from ouzel.engine.state.two_way_tokens import two_way_begins


class _Piece(msgspec.Struct, frozen=True):
    """Successive tokens of a sequence; each attends to the tokens before it in the cache."""

    sequence: Sequence
    begin: int
    token_ids: list[int]

    @property
    def end(self) -> int:
        return self.begin + len(self.token_ids)


def build_batch(
    scheduled: list[Scheduled],
    block_size: int,
    images: ImageEncoder | NoImages = NO_IMAGES,
    *,
    has_states: bool = False,
) -> ForwardBatch:
    """Joins the scheduled tokens of all sequences; the proposed tokens of a sequence follow its
    own.

    The first sampled rows belong to the sequences that compute their last token: this row and the
    rows of their proposed tokens. The rows that score prompts come after them.

    A proposed token can be a subsequence of its own over the same blocks, because attention writes
    all keys and values before it reads. The sequence says which form costs less (`proposals`);
    where rows have kinds, the kind decides (`row_kinds`).
    """
    pieces = list(chain.from_iterable(_pieces(entry) for entry in scheduled))
    begins = prefix_sums(np.array(list(map(_num_rows, scheduled)), dtype=np.int32))
    image_rows, image_features = find_image_rows(_new_tokens(scheduled, begins), images)
    batch = build_flat_batch(
        [(piece.sequence.block_table, piece.begin, piece.token_ids) for piece in pieces],
        np.concatenate([_sampled_rows(scheduled, begins), *_scored_rows(scheduled, begins)]),
        block_size,
    )
    return replace(
        batch,
        positions=place_in_grids(_rows(pieces, batch.subsequence_begins), batch.positions),
        state_slots=np.array(list(map(_slots, scheduled)), dtype=np.int32) if has_states else None,
        image_rows=image_rows,
        image_features=image_features,
        two_way_begins=_two_way_begins(scheduled),
        adapter_slots=_adapter_slots(scheduled),
        audio_slots=_audio_slots(scheduled, images) if isinstance(images, AudioEncoder) else None,
    )


def split_logits(
    scheduled: list[Scheduled], logits: NDArray[np.float32]
) -> tuple[list[tuple[Sequence, NDArray[np.float32]]], NDArray[np.float32]]:
    """Splits the logits of a batch of `build_batch`: the sampled rows by sequence, and the scored
    rows.
    """
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
    """Yields all tokens as one piece, or each as its own piece.

    A mixture would be wrong: the pieces after a longer piece would not see its rows in the cache.
    """
    sequence, begin = entry.sequence, entry.sequence.num_computed_tokens
    token_ids = [*sequence.token_ids[begin : begin + entry.num_new_tokens], *sequence.proposal]
    if goes_apart(sequence) or (
        sequence.proposal and sequence.is_apart and not sequence.keeps_kinds
    ):
        for place, token_id in enumerate(token_ids, start=begin):
            yield _Piece(sequence, place, [token_id])
    else:
        yield _Piece(sequence, begin, token_ids)


def _rows(pieces: list[_Piece], begins: NDArray[np.int32]) -> Iterator[TokenRows]:
    for piece, begin in zip(pieces, begins.tolist(), strict=False):
        yield TokenRows(piece.sequence, piece.begin, piece.end, begin)


def _new_tokens(scheduled: list[Scheduled], begins: NDArray[np.int32]) -> Iterator[TokenRows]:
    """Yields the rows without proposals, which never stand for images."""
    for entry, begin in zip(scheduled, begins.tolist(), strict=False):
        past = entry.sequence.num_computed_tokens
        yield TokenRows(entry.sequence, past, past + entry.num_new_tokens, begin)


def _adapter_slots(scheduled: list[Scheduled]) -> NDArray[np.int32] | None:
    """Returns the adapter slot of each row, with the rows of proposals.

    None without any adapter.
    """
    adapters = [entry.sequence.adapter for entry in scheduled]
    if not any(adapters):
        return None
    slots = np.array(
        [-1 if adapter is None else adapter.slot for adapter in adapters], dtype=np.int32
    )
    return np.repeat(slots, list(map(_num_rows, scheduled)))


def _audio_slots(scheduled: list[Scheduled], audio: AudioEncoder) -> NDArray[np.int32]:
    """Returns the slot with the sound of each row."""
    slots = np.array([audio.slot(entry.sequence) for entry in scheduled], dtype=np.int32)
    return np.repeat(slots, list(map(_num_rows, scheduled)))


def _two_way_begins(scheduled: list[Scheduled]) -> NDArray[np.int32] | None:
    """Returns the begin of each row's span of two-way tokens, with the rows of proposals.

    None without any such span.
    """
    if not any(entry.sequence.two_way_spans for entry in scheduled):
        return None
    begins = []
    for entry in scheduled:
        past = entry.sequence.num_computed_tokens
        begins.append(two_way_begins(entry.sequence.two_way_spans, past, past + _num_rows(entry)))
    return np.concatenate(begins)


def _slots(entry: Scheduled) -> tuple[int, int]:
    return entry.sequence.state_slot, entry.sequence.next_state_slot


def _sampled_rows(scheduled: list[Scheduled], begins: NDArray[np.int32]) -> NDArray[np.int64]:
    """Returns the last row and the proposed rows of each sequence that completes its prompt."""
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
