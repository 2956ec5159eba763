"""Encodes matrices in four bits and corrects the rounding error of a column in the columns after
it.

The loss of a rounded matrix Q is the squared error of its products, trace(E H E'), where E = W - Q,
and H is the sum of x x' over recorded input rows x. With H = (I + U) D (I + U)', U strictly upper
triangular and D diagonal:

    loss  = sum over columns k of D[k] * |w'[k] - q[k]|^2
    w'[k] = w[k] + sum over j < k of E[j] * U[j, k]

So column k is rounded from w'[k] instead of w[k]. This is GPTQ (Frantar et al., 2022) in the form
of LDLQ (Chee et al., 2023), which takes one Cholesky factor and no inverse. D also weights the
search for the scale of a group.

Afterwards refinement.py improves levels and scales. Given H, the rows of a matrix are independent
of each other.

A wide matrix is cut into blocks of columns, each with an H of its own, and correlations between
blocks are left out. The work grows with the square and the cube of the columns, and a few thousand
rows say little about so many correlations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.calibration.refinement import refine
from ouzel.backends.openvino.weights.encodings import Parts, pack_nibbles

Floats = NDArray[np.float32]

# A few thousand rows determine the diagonal of H better than the rest. Without this shrinkage the
# products of another text lose more.
SHRINKAGE = 0.2  # share of H outside its diagonal that is left out
DAMPING = 0.1  # added to the diagonal of H, times the mean of the diagonal
# Columns of a block; two blocks instead of one cost down_proj 5 % more error, three blocks 11 %.
MAX_COLUMNS = 5120
CHOLESKY_COLUMNS = 192  # columns that are factorised at once
SUB_BLOCK = 16  # columns that are corrected one by one; the others are corrected by matrix products
# levels that are tried for the extreme value of a group
TARGETS = (-6.6, -7.0, -7.4, -7.8, -8.2, -8.6, -9.0, -9.5, -10.0, -10.8)
SMALLEST_SCALE = 2.0**-24  # the smallest number of f16
# A second sweep gains a fifth as much again, and takes as long as error feedback.
REFINING_SWEEPS = 1


@dataclass(frozen=True, slots=True)
class Feedback:
    moments: Floats  # H, [columns, columns]
    unit: Floats  # I + U, [columns, columns]
    importance: Floats  # D, [columns]


def factorise(moments: Floats, damping: float = DAMPING) -> Feedback:
    """Strengthens the diagonal of H, [columns, columns], and factorises H."""
    mean = np.float32(np.mean(np.diag(moments))) or np.float32(1)
    damped = moments * (np.float32(1 - SHRINKAGE) / mean)
    damped[np.diag_indices(len(damped))] = np.diag(moments) / mean + np.float32(damping)
    # In the reverse order Cholesky's lower factor is the upper factor of H.
    root = damped[::-1, ::-1].copy()
    decompose(root)
    root = np.ascontiguousarray(root[::-1, ::-1])
    diagonal = np.diag(root).copy()
    root /= diagonal
    damped *= mean
    return Feedback(damped, root, diagonal * diagonal * mean)


def decompose(matrix: Floats) -> None:
    """Replaces the matrix by its lower Cholesky factor.

    It takes a few columns at a time, so that most of the work is in matrix products: numpy's
    function takes six times as long.
    """
    for begin in range(0, len(matrix), CHOLESKY_COLUMNS):
        end = begin + CHOLESKY_COLUMNS
        if begin:
            matrix[begin:, begin:end] -= matrix[begin:, :begin] @ matrix[begin:end, :begin].T
        corner = np.linalg.cholesky(matrix[begin:end, begin:end])
        matrix[begin:end, begin:end] = corner
        matrix[end:, begin:end] = matrix[end:, begin:end] @ np.linalg.inv(corner).T
        matrix[begin:end, end:] = 0


def column_blocks(columns: int, group_size: int) -> list[slice]:
    """Divides the columns into blocks of up to MAX_COLUMNS columns.

    The blocks are as few as possible, of whole groups and about equal in size.
    """
    num_blocks, num_groups = -(-columns // MAX_COLUMNS), columns // group_size
    bounds = [index * num_groups // num_blocks * group_size for index in range(num_blocks + 1)]
    return [slice(begin, end) for begin, end in pairwise(bounds)]


def encode_blocks(
    rows: Floats, feedbacks: Sequence[Feedback], group_size: int, num_sweeps: int = REFINING_SWEEPS
) -> Parts:
    """Encodes rows as i4, each block of columns by its own feedback (`encode_with_feedback`)."""
    ends = np.cumsum([len(each.importance) for each in feedbacks]).tolist()
    blocks = [
        encode_with_feedback(rows[:, begin:end], each, group_size, num_sweeps)
        for begin, end, each in zip([0, *ends], ends, feedbacks, strict=False)
    ]
    return {name: np.concatenate([each[name] for each in blocks], axis=1) for name in blocks[0]}


def encode_with_feedback(
    rows: Floats, feedback: Feedback, group_size: int, num_sweeps: int = REFINING_SWEEPS
) -> Parts:
    """Encodes rows as i4 with an f16 scale for each group of columns."""
    # The values of a column lie together, so that operations run along many rows.
    weights = np.ascontiguousarray(rows.T)
    errors = np.empty_like(weights)
    levels = np.empty(weights.shape, np.int8)
    scales = []
    for begin in range(0, len(weights), group_size):
        some = slice(begin, begin + group_size)
        corrected = weights[some] + feedback.unit[:begin, some].T @ errors[:begin]
        scale = search_weighted(corrected, feedback.importance[some])
        _round_group(corrected, scale, some, feedback, (weights, errors, levels))
        scales.append(scale)
    all_scales = np.stack(scales)
    refine(errors, levels, all_scales, feedback.moments, num_sweeps)
    values = pack_nibbles(np.ascontiguousarray(levels.T).view(np.uint8))
    return {"values": values, "scales": np.ascontiguousarray(all_scales.T.astype(np.float16))}


def search_weighted(columns: Floats, importance: Floats) -> Floats:
    """Returns the scale of each group, representable in f16.

    `columns` is [columns of a group, groups]. For each target the best scale in closed form is
    tried, like `search_some_scales` without weights.
    """
    low, high = columns.min(axis=0), columns.max(axis=0)
    extreme = np.where(-low >= high, low, high)
    extreme[extreme == 0] = 1
    gain, scale = np.full_like(extreme, -1), np.ones_like(extreme)
    weighted, levels = columns * importance[:, None], np.empty_like(columns)
    for target in TARGETS:
        np.multiply(columns, np.float32(target) / extreme, out=levels)
        _to_levels(levels)
        product = np.einsum("cg,cg->g", weighted, levels)
        square = np.maximum(importance @ (levels * levels), np.float32(1e-30))
        is_better = product * product > gain * square
        np.copyto(gain, product * product / square, where=is_better)
        np.copyto(scale, product / square, where=is_better)
    rounded = scale.astype(np.float16).astype(np.float32)
    return np.where(rounded == 0, np.float32(SMALLEST_SCALE), rounded)


def _round_group(
    corrected: Floats,
    scale: Floats,
    some: slice,
    feedback: Feedback,
    parts: tuple[Floats, Floats, NDArray[np.int8]],
) -> None:
    """Rounds the columns of one group in turn, and corrects the columns after them in the
    group.
    """
    weights, errors, levels = parts
    unit, inverse = feedback.unit[some, some], 1 / scale
    own_errors = errors[some]
    for first in range(0, len(corrected), SUB_BLOCK):
        last = min(first + SUB_BLOCK, len(corrected))
        for k in range(first, last):
            level = _to_levels(corrected[k] * inverse)
            levels[some.start + k] = level
            np.subtract(weights[some.start + k], level * scale, out=own_errors[k])
            corrected[k + 1 : last] += unit[k, k + 1 : last, None] * own_errors[k]
        corrected[last:] += unit[first:last, last:].T @ own_errors[first:last]


def _to_levels(scaled: Floats) -> Floats:
    np.rint(scaled, out=scaled)
    return np.clip(scaled, -8, 7, out=scaled)
