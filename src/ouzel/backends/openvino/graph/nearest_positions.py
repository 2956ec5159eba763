"""Adds learned positions of a square to images of any size: each patch has the nearest one.

Reference: transformers, `get_vision_nearest_position_ids`. It compares fractions in single
precision. Here the numbers are exact, which differs for no square of 70 positions, as all published
checkpoints have.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, gather
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops, ov

INPUT = "places"


def add_nearest_positions(
    b: VisionBuilder, rows: Node, name: str, num_places: int, size: int
) -> Node:
    """Adds positions to rows [tiles, patches, size], whose tiles have one shape.

    `name` is the tensor of the learned positions, [num_places, size].
    """
    table = b.constant(b.array(name, num_places, size))
    return ops.add(rows, gather(table, b.input(INPUT, [-1], ov.Type.i64)))


def nearest_places(rows: int, columns: int, side: int) -> NDArray[np.int64]:
    """Returns the number of the learned position of each patch, [rows, columns].

    The square has `side` positions along each side.
    """
    down, across = (np.arange(num, dtype=np.int64) * side // num for num in (rows, columns))
    return down[:, None] * side + across
