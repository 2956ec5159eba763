"""Finds the cheapest path through a matrix of costs: dynamic time warping.

Steps with equal costs have the order of openai-whisper's `timing.py`. The cells of one
anti-diagonal do not depend on each other, so each is one operation on arrays.
"""

import numpy as np
from numpy.typing import NDArray


def find_row_begins(costs: NDArray[np.float32]) -> NDArray[np.int64]:
    """Returns the column in which the cheapest path enters each row, [rows].

    The path leads from the first row and column to the last ones; each step goes to the next row,
    the next column, or both. `costs` is [rows, columns], both at least 1.
    """
    are_both, are_next_row = _find_steps(np.asarray(costs, np.float64))
    begins = np.zeros(len(costs), np.int64)
    row, column = costs.shape[0] - 1, costs.shape[1] - 1
    while row > 0:
        begins[row] = column
        diagonal = row + column
        if column == 0 or are_next_row[diagonal, row]:
            row -= 1
        elif are_both[diagonal, row]:
            row, column = row - 1, column - 1
        else:
            column -= 1
    return begins  # the first row begins in the first column


def _find_steps(costs: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tells which cells are entered from the row and column before, and which from the row before.

    Both arrays are [diagonals, rows]; the diagonal of a cell is its row plus its column. All other
    cells are entered from the column before.
    """
    num_rows, num_columns = costs.shape
    num_diagonals = num_rows + num_columns - 1
    skewed = np.zeros((num_diagonals, num_rows))
    rows = np.arange(num_rows)[:, None]
    skewed[rows + np.arange(num_columns), rows] = costs
    are_both = np.zeros((num_diagonals, num_rows), np.bool_)
    are_next_row = np.zeros((num_diagonals, num_rows), np.bool_)
    # Sums of the diagonal and the two before it; place 0 stands for the row before the first.
    now, before, before_that = np.full((3, num_rows + 1), np.inf)
    before_that[0] = 0.0  # the path begins before the first cell
    for diagonal in range(num_diagonals):
        first = max(0, diagonal - num_columns + 1)
        end = min(num_rows, diagonal + 1)
        both = before_that[first:end]
        next_row = before[first:end]
        next_column = before[first + 1 : end + 1]
        is_both, is_next_row = are_both[diagonal, first:end], are_next_row[diagonal, first:end]
        np.less(both, np.minimum(next_row, next_column), out=is_both)
        np.less(next_row, np.minimum(both, next_column), out=is_next_row)
        least = now[first + 1 : end + 1]
        least[:] = next_column
        np.copyto(least, next_row, where=is_next_row)
        np.copyto(least, both, where=is_both)
        least += skewed[diagonal, first:end]
        now[first] = np.inf  # outside of the matrix, or left of it
        now, before, before_that = before_that, now, before
    return are_both, are_next_row
