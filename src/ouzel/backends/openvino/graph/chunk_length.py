"""Reads the length of a step's chunks when the step runs, from an axis of the rows.

The graph computes everything that depends on the length once for all layers.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, gather, integers
from ouzel.backends.openvino.library import ops

LONGEST_CHUNK = 64


class ChunkLength:
    def __init__(self, rows: Node) -> None:
        """Reads the length from rows [N, length]."""
        self._length = gather(ops.shape_of(rows), integers(1))
        self._shapes: dict[tuple[int | None, ...], Node] = {}
        self._corners: dict[bytes, Node] = {}

    def shape(self, *sizes: int | None) -> Node:
        """Returns a shape for reshape, in which None stands for the length."""
        if sizes not in self._shapes:
            parts = [self._length if size is None else integers(size) for size in sizes]
            self._shapes[sizes] = ops.concat(parts, 0)
        return self._shapes[sizes]

    def corner(self, matrix: NDArray[np.float32]) -> Node:
        """Returns the first rows and columns of a matrix, [1, 1, length, length].

        The matrix is [LONGEST_CHUNK, LONGEST_CHUNK]. It gets four axes here, because the runtime
        would add them before a product, which would then no longer be float32.
        """
        key = matrix.tobytes()
        if key not in self._corners:
            whole = ops.constant(matrix[None, None])
            ends = ops.concat([self._length, self._length], 0)
            self._corners[key] = ops.slice(
                whole, integers(0, 0), ends, integers(1, 1), integers(2, 3)
            )
        return self._corners[key]
