"""Improves levels and scales after error feedback, a group of columns at a time.

Error feedback corrects a column by the columns before it only, and chooses a scale before it knows
the levels of the group. Refinement sets every level and every scale once more to its best value
while all others stay, so that trace(E H E') falls with each step (cyclic coordinate descent;
error_feedback.py has the symbols). The derivative by a column is the column of E H. With it the
best level of column k moves by (E H)[k] / (scale * H[k, k]), and the best scale of a group with
levels q moves by (q . (E H)[group]) / (q' H[group, group] q).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

SUB_BLOCK = 16  # columns that are corrected one by one; the others are corrected by matrix products


def refine(
    errors: Floats, levels: NDArray[np.int8], scales: Floats, moments: Floats, num_sweeps: int
) -> None:
    """Improves a matrix in place. A column of the matrix is a row of `errors` and of `levels`.

    `errors` are the weights minus levels * scales; `scales`, [groups, rows of the matrix], stay
    representable in f16.
    """
    group_size = len(errors) // len(scales)
    for _ in range(num_sweeps):
        for group, scale in enumerate(scales):
            some = slice(group * group_size, (group + 1) * group_size)
            block, own_errors = moments[some, some], errors[some]
            gradient = moments[some] @ errors
            own_levels = levels[some].astype(np.float32)
            _refine_scale(scale, own_levels, own_errors, gradient, block)
            _refine_levels(scale, own_levels, own_errors, gradient, block)
            levels[some] = own_levels


def _refine_scale(
    scale: Floats, levels: Floats, errors: Floats, gradient: Floats, block: Floats
) -> None:
    products = block @ levels
    curvature = np.maximum(np.einsum("cr,cr->r", levels, products), np.float32(1e-30))
    best = scale + np.einsum("cr,cr->r", levels, gradient) / curvature
    best = best.astype(np.float16).astype(np.float32)
    # A scale of 0 would lose its group for good, so such a scale keeps its value.
    np.copyto(best, scale, where=best * scale <= 0)
    change = scale - best
    errors += levels * change
    gradient += products * change
    scale[:] = best


def _refine_levels(
    scale: Floats, levels: Floats, errors: Floats, gradient: Floats, block: Floats
) -> None:
    inverse, curvature = 1 / scale, np.diag(block)
    changes = np.empty_like(levels)
    for first in range(0, len(levels), SUB_BLOCK):
        last = min(first + SUB_BLOCK, len(levels))
        for k in range(first, last):
            level = levels[k] + gradient[k] * (inverse / curvature[k])
            np.clip(np.rint(level, out=level), -8, 7, out=level)
            np.multiply(levels[k] - level, scale, out=changes[k])
            levels[k] = level
            gradient[k + 1 : last] += block[k, k + 1 : last, None] * changes[k]
        gradient[last:] += block[first:last, last:].T @ changes[first:last]
    errors += changes
