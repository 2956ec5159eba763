"""How long the chunks of a step are is known when it runs: an axis of the rows that the host makes.

Whatever a graph makes of it, it makes once for all layers.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, gather, integers
from ouzel.backends.openvino.library import ops

LONGEST_CHUNK = 64


class ChunkLength:
    def __init__(self, rows: Node) -> None:
        """Takes [N, length]."""
        self._length = gather(ops.shape_of(rows), integers(1))
        self._shapes: dict[tuple[int | None, ...], Node] = {}
        self._corners: dict[bytes, Node] = {}

    def shape(self, *sizes: int | None) -> Node:
        """Returns a shape to reshape to, in which the length stands for None."""
        if sizes not in self._shapes:
            parts = [self._length if size is None else integers(size) for size in sizes]
            self._shapes[sizes] = ops.concat(parts, 0)
        return self._shapes[sizes]

    def corner(self, matrix: NDArray[np.float32]) -> Node:
        """Returns [1, 1, length, length], the first rows and columns of [LONGEST_CHUNK,
        LONGEST_CHUNK].

        The runtime would bring it to four axes before a product, which is no more float32 then.
        """
        key = matrix.tobytes()
        if key not in self._corners:
            whole, ends = (
                ops.constant(matrix[None, None]),
                ops.concat([self._length, self._length], 0),
            )
            self._corners[key] = ops.slice(
                whole, integers(0, 0), ends, integers(1, 1), integers(2, 3)
            )
        return self._corners[key]
