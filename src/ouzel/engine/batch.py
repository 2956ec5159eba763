"""A runner takes what is scheduled as flat arrays."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import ForwardBatch
from ouzel.engine.image_encoder import ImageEncoder
from ouzel.engine.scheduler import Scheduled


def build_batch(
    scheduled: list[Scheduled], block_size: int, images: ImageEncoder | None = None, *, has_states: bool = False
) -> ForwardBatch:
    """Puts all scheduled tokens one after the other.

    The rows whose logits it asks for are first those of the sequences whose last token is computed, to sample from;
    then the scored ones.
    """
    new_lens = np.array([entry.num_new_tokens for entry in scheduled], dtype=np.int32)
    past_lens = np.array([entry.sequence.num_computed_tokens for entry in scheduled], dtype=np.int32)
    context_lens = past_lens + new_lens
    num_blocks = -(-context_lens // block_size)
    begins = _prefix_sums(new_lens)
    tables = (entry.sequence.block_table[:count] for entry, count in zip(scheduled, num_blocks.tolist(), strict=True))
    last_rows = begins[1:] - 1
    image_rows, image_features = _image_rows(scheduled, begins, images)
    samples = np.array([entry.completes_prompt for entry in scheduled], dtype=np.bool_)
    return ForwardBatch(
        token_ids=np.array(list(chain.from_iterable(map(_new_token_ids, scheduled))), dtype=np.int64),
        positions=_grid_positions(scheduled, _positions(past_lens, new_lens), begins),
        past_lens=past_lens,
        subsequence_begins=begins,
        block_indices=np.array(list(chain.from_iterable(tables)), dtype=np.int32),
        block_indices_begins=_prefix_sums(num_blocks),
        max_context_len=int(context_lens.max()),
        sampled_rows=np.concatenate([last_rows[samples], *_scored_rows(scheduled, begins)]).astype(np.int64),
        state_slots=np.array(list(map(_slots, scheduled)), dtype=np.int32) if has_states else None,
        image_rows=image_rows,
        image_features=image_features,
    )


def _new_token_ids(entry: Scheduled) -> list[int]:
    begin = entry.sequence.num_computed_tokens
    return entry.sequence.token_ids[begin : begin + entry.num_new_tokens]


def _slots(entry: Scheduled) -> tuple[int, int]:
    return entry.sequence.state_slot, entry.sequence.next_state_slot


def _scored_rows(scheduled: list[Scheduled], begins: NDArray[np.int32]) -> Iterator[NDArray[np.int64]]:
    for entry, begin in zip(scheduled, begins.tolist(), strict=False):
        if entry.scored_rows:
            yield np.array(entry.scored_rows, dtype=np.int64) - entry.sequence.num_computed_tokens + begin


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
            features.append(images.features(entry.sequence, own.images[number]).take(rows_of_image, axis=1))
    return (np.concatenate(rows), np.concatenate(features, axis=1)) if rows else (None, None)


def _grid_positions(
    scheduled: list[Scheduled], positions: NDArray[np.int64], begins: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Gives each token three positions where an image has a grid of them."""
    grids = positions
    for entry, begin in zip(scheduled, begins.tolist(), strict=False):
        past, images = entry.sequence.num_computed_tokens, entry.sequence.images
        own = None if images is None else images.positions(past, past + entry.num_new_tokens)
        if own is not None:
            if grids is positions:
                grids = np.repeat(positions[None], 3, axis=0)
            grids[:, begin : begin + entry.num_new_tokens] = own
    return grids


def _prefix_sums(lens: NDArray[np.int32]) -> NDArray[np.int32]:
    sums = np.zeros(lens.size + 1, dtype=np.int32)
    np.cumsum(lens, out=sums[1:])
    return sums


def _positions(past_lens: NDArray[np.int32], new_lens: NDArray[np.int32]) -> NDArray[np.int64]:
    """Counts on from each sequence's past: 0, 1, 2, ... where it has none."""
    if new_lens.max() == 1:
        return past_lens.astype(np.int64)
    starts = np.repeat(past_lens - _prefix_sums(new_lens)[:-1], new_lens)
    return starts.astype(np.int64) + np.arange(starts.size, dtype=np.int64)
