"""Computes which frames of a sound the tokens of its transcript attend to.

Source: openai-whisper, timing.py (find_alignment): softmax over the frames, normalisation over the
tokens, a median filter of 7 frames, and the mean of the alignment heads.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

_FILTER_REACH = 3  # frames on each side of the median filter
# The exchanges of a sorting network that bring the median of seven numbers into the middle
# (Devillard 1998, "Fast median search").
_EXCHANGES = (
    *((0, 5), (0, 3), (1, 6), (2, 4), (0, 1), (3, 5), (2, 6), (2, 3)),
    *((3, 6), (4, 5), (1, 4), (1, 3), (3, 4)),
)


def align_tokens(queries: Array, keys: Array, head_dim: int) -> Array:
    """Returns the alignment [tokens, frames].

    `queries` [tokens, heads * head_dim] and `keys` [frames, heads * head_dim] are those of the
    alignment heads.
    """
    by_head = (each.reshape(len(each), -1, head_dim).swapaxes(0, 1) for each in (queries, keys))
    heads, frames = by_head
    scores = (heads * np.float32(head_dim**-0.5)) @ frames.swapaxes(1, 2)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    deviation = weights.std(axis=1, keepdims=True)
    weights = (weights - weights.mean(axis=1, keepdims=True)) / np.maximum(deviation, 1e-12)
    matrix: Array = filter_by_median(weights).mean(axis=0)
    return matrix


def filter_by_median(rows: Array) -> Array:
    """Replaces each number of the last axis by the median of seven around it.

    The ends are mirrored. Rows of fewer than four numbers stay as they are.
    """
    if rows.shape[-1] <= _FILTER_REACH:
        return rows
    width = rows.shape[-1]
    padding = [(0, 0)] * (rows.ndim - 1) + [(_FILTER_REACH, _FILTER_REACH)]
    padded = np.pad(rows, padding, mode="reflect")
    window = [padded[..., begin : begin + width].copy() for begin in range(2 * _FILTER_REACH + 1)]
    for low, high in _EXCHANGES:
        smaller = np.minimum(window[low], window[high])
        np.maximum(window[low], window[high], out=window[high])
        window[low] = smaller
    return window[_FILTER_REACH]
