"""Finds the cheapest path through a matrix of costs: dynamic time warping.

The steps and their order at equal costs are those of openai-whisper's `timing.py`. The cells of one
anti-diagonal do not depend on each other, so each is one operation on arrays.
"""

import numpy as np
from numpy.typing import NDArray

_BOTH, _NEXT_ROW, _NEXT_COLUMN = 0, 1, 2


def find_row_begins(costs: NDArray[np.float32]) -> NDArray[np.int64]:
    """Returns the column in which the cheapest path enters each row, [rows].

    The path leads from the first row and column to the last ones; each step goes to the next row,
    the next column, or both. `costs` is [rows, columns], both at least 1.
    """
    steps = _find_steps(np.asarray(costs, np.float64))
    begins = np.zeros(len(costs), np.int64)
    row, column = costs.shape[0] - 1, costs.shape[1] - 1
    while row > 0 or column > 0:
        begins[row] = column
        step = steps[row + column, row]
        if row == 0:
            break  # the path began in column 0
        if column == 0 or step == _NEXT_ROW:
            row -= 1
        elif step == _BOTH:
            row, column = row - 1, column - 1
        else:
            column -= 1
    begins[0] = 0
    return begins


def _find_steps(costs: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Returns the step into each cell, by diagonal (row + column) and row."""
    num_rows, num_columns = costs.shape
    num_diagonals = num_rows + num_columns - 1
    skewed = np.zeros((num_diagonals, num_rows))
    rows = np.arange(num_rows)[:, None]
    skewed[rows + np.arange(num_columns), rows] = costs
    steps = np.zeros((num_diagonals, num_rows), np.uint8)
    # sums of the two diagonals before; place 0 stands for the row before the first
    before = np.full(num_rows + 1, np.inf)
    before_that = np.full(num_rows + 1, np.inf)
    before_that[0] = 0.0  # the path begins before the first cell
    for diagonal in range(num_diagonals):
        first = max(0, diagonal - num_columns + 1)
        end = min(num_rows, diagonal + 1)
        both = before_that[first:end]
        next_row = before[first:end]
        next_column = before[first + 1 : end + 1]
        is_both = (both < next_row) & (both < next_column)
        is_next_row = (next_row < both) & (next_row < next_column)
        steps[diagonal, first:end] = np.where(
            is_both, _BOTH, np.where(is_next_row, _NEXT_ROW, _NEXT_COLUMN)
        )
        least = np.where(is_both, both, np.where(is_next_row, next_row, next_column))
        now = np.full(num_rows + 1, np.inf)
        now[first + 1 : end + 1] = skewed[diagonal, first:end] + least
        before_that, before = before, now
    return steps
