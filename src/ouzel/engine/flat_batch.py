"""Builds the flat arrays of a step from spans: the new tokens of subsequences and their blocks."""

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import ForwardBatch

Span = tuple[list[int], int, list[int]]
"""The block table of a subsequence, the number of its tokens in the cache, and its new tokens."""


def build_flat_batch(
    spans: list[Span], sampled_rows: NDArray[np.int64], block_size: int
) -> ForwardBatch:
    """Puts the new tokens of all spans one after the other; each span's positions follow its past.

    A block table may be longer than the span needs.
    """
    new_lens = np.array([len(token_ids) for _, _, token_ids in spans], dtype=np.int32)
    past_lens = np.array([past for _, past, _ in spans], dtype=np.int32)
    context_lens = past_lens + new_lens
    num_blocks = -(-context_lens // block_size)
    tables = (
        table[:count] for (table, _, _), count in zip(spans, num_blocks.tolist(), strict=True)
    )
    return ForwardBatch(
        token_ids=np.array(
            list(chain.from_iterable(token_ids for _, _, token_ids in spans)), dtype=np.int64
        ),
        positions=_positions(past_lens, new_lens),
        past_lens=past_lens,
        subsequence_begins=prefix_sums(new_lens),
        block_indices=np.array(list(chain.from_iterable(tables)), dtype=np.int32),
        block_indices_begins=prefix_sums(num_blocks),
        max_context_len=int(context_lens.max()),
        sampled_rows=sampled_rows,
    )


def prefix_sums(lens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Returns the sums of the first 0, 1, 2, ... lengths, [number of lengths + 1]."""
    sums = np.zeros(lens.size + 1, dtype=np.int32)
    np.cumsum(lens, out=sums[1:])
    return sums


def _positions(past_lens: NDArray[np.int32], new_lens: NDArray[np.int32]) -> NDArray[np.int64]:
    """Returns the positions of all new tokens: past, past + 1, past + 2, ... for each span."""
    if new_lens.max() == 1:
        return past_lens.astype(np.int64)
    starts = np.repeat(past_lens - prefix_sums(new_lens)[:-1], new_lens)
    return starts.astype(np.int64) + np.arange(starts.size, dtype=np.int64)
