"""A row of logits is seen as the columns of a matrix: numpy reduces those at full width, and few need a closer look."""

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]  # [vocab_size]

_SMALLEST = np.finfo(np.float32).min


def num_columns(row: Row) -> int:
    """Returns the width of the matrix as which a row is seen; a short row is one column."""
    return 1024 if row.size >= 8192 else 1


def largest(row: Row, num: int) -> NDArray[np.int64]:
    """Returns ids of at least the `num` largest elements that are not -inf, in no order; of all where they are fewer.

    The maxima of `num` columns reach the num-th largest of them: so every one of the `num` largest elements reaches it.
    """
    width = num_columns(row)
    if num * 4 >= width:
        return np.flatnonzero(row >= _at_least_finite(np.partition(row, -num)[-num]))
    num_full = row.size // width * width
    maxima = row[:num_full].reshape(-1, width).max(axis=0)
    return np.flatnonzero(row >= _at_least_finite(np.partition(maxima, -num)[-num]))


def _at_least_finite(bound: np.float32) -> np.float32:
    """Turns -inf into the smallest number, so that nothing ruled out reaches it; NaN stays, and nothing does."""
    return _SMALLEST if bound == -np.inf else bound


class ColumnSums:
    """It finds where a share of a row's mass lies without summing up the whole row one by one."""

    def __init__(self, weights: Row) -> None:
        self.weights = weights
        self._num_columns = num_columns(weights)
        self._num_full = weights.size // self._num_columns * self._num_columns
        self._matrix = weights[: self._num_full].reshape(-1, self._num_columns)
        columns = self._matrix.sum(axis=0, dtype=np.float32).astype(np.float64)
        tail = weights[self._num_full :].astype(np.float64)
        self._cumulative = np.cumsum(
            np.concatenate([columns, tail])
        )  # columns first, then each tail element for itself

    @property
    def total(self) -> float:
        return float(self._cumulative[-1])

    def find(self, share: float) -> int:
        """Returns the index at which this share (in [0, 1)) of the mass is passed; its weight is not 0."""
        target = share * self.total
        place = int(np.searchsorted(self._cumulative, target, side="right"))
        if place >= self._num_columns:
            return self._num_full + place - self._num_columns
        column = np.cumsum(self._matrix[:, place], dtype=np.float64)
        rest = target - (float(self._cumulative[place - 1]) if place else 0.0)
        # The column was summed in float32: its last element may lie below what is looked for.
        rest = min(rest, float(np.nextafter(column[-1], 0.0)))
        return int(np.searchsorted(column, rest, side="right")) * self._num_columns + place
