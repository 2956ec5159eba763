"""Views a row of logits as a matrix whose columns numpy reduces at full width."""

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]  # [vocab_size]

_SMALLEST = np.finfo(np.float32).min


def num_columns(row: Row) -> int:
    """Returns the number of columns into which a row is divided; a short row is one column."""
    return 1024 if row.size >= 8192 else 1


def largest(row: Row, num: int) -> NDArray[np.int64]:
    """Returns the ids of the `num` largest elements, and perhaps some more, in no order.

    Elements of -inf are left out, so the result may be shorter. The `num`-th largest column maximum
    is a lower bound of the `num` largest elements.
    """
    width = num_columns(row)
    if num * 4 >= width:
        return np.flatnonzero(row >= _at_least_finite(np.partition(row, -num)[-num]))
    num_full = row.size // width * width
    maxima = row[:num_full].reshape(-1, width).max(axis=0)
    return np.flatnonzero(row >= _at_least_finite(np.partition(maxima, -num)[-num]))


def _at_least_finite(bound: np.float32) -> np.float32:
    """Turns -inf into the smallest finite number, which excludes -inf from a comparison.

    Keeps NaN.
    """
    return _SMALLEST if bound == -np.inf else bound


class ColumnSums:
    """The sums of a row's columns, to find the element at a share of the row's mass in few
    steps.
    """

    def __init__(self, weights: Row) -> None:
        self.weights = weights
        self._num_columns = num_columns(weights)
        self._num_full = weights.size // self._num_columns * self._num_columns
        self._matrix = weights[: self._num_full].reshape(-1, self._num_columns)
        columns = self._matrix.sum(axis=0, dtype=np.float32).astype(np.float64)
        tail = weights[self._num_full :].astype(np.float64)
        # the columns first, then each element of the tail by itself
        self._cumulative = np.cumsum(np.concatenate([columns, tail]))

    @property
    def total(self) -> float:
        return float(self._cumulative[-1])

    def find(self, share: float) -> int:
        """Returns the index at which this share (in [0, 1)) of the mass is passed.

        Its weight is not 0.
        """
        target = share * self.total
        place = int(np.searchsorted(self._cumulative, target, side="right"))
        if place >= self._num_columns:
            return self._num_full + place - self._num_columns
        column = np.cumsum(self._matrix[:, place], dtype=np.float64)
        rest = target - (float(self._cumulative[place - 1]) if place else 0.0)
        # The column was summed in float32: its last element may lie below the target.
        rest = min(rest, float(np.nextafter(column[-1], 0.0)))
        return int(np.searchsorted(column, rest, side="right")) * self._num_columns + place
