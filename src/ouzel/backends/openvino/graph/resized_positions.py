"""Resizes learned positions of a square to the rows and columns of an image's patches.

Resizing is linear: each patch has a share of each learned position. Reference: transformers,
`resize_positional_embeddings` of models/siglip2 and `get_vision_interpolation_indices_and_weights`.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.patches import merged_order
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Inputs

INPUT = "position_shares"


def add_positions(b: VisionBuilder, rows: Node, name: str, num_places: int, size: int) -> Node:
    """Adds the resized positions to rows [..., patches, size]; `name` is the tensor of the learned
    ones, [num_places, size].
    """
    table = b.constant(b.array(name, num_places, size))
    shares = b.input(INPUT, [-1, num_places], ov.Type.f32)
    return ops.add(rows, ops.matmul(shares, table, False, False))


def position_inputs(
    rows: int, columns: int, side: int, merge: int, *, is_antialiased: bool
) -> Inputs:
    """Returns the shares of the learned positions in each patch's, [patches, side^2]."""
    down, across = (_shares(num, side, is_antialiased=is_antialiased) for num in (rows, columns))
    shares = down[:, None, :, None] * across[None, :, None, :]
    return {INPUT: merged_order(shares.reshape(rows, columns, side**2), merge)}


def _shares(num: int, side: int, *, is_antialiased: bool) -> NDArray[np.float32]:
    """Returns the shares of `side` places in each of `num`, as bilinear resizing has them.

    If resizing is antialiased, a place is an average of several where there are fewer than before.
    """
    scale = np.float32(side) / np.float32(num)
    centers = (np.arange(num, dtype=np.float32) + np.float32(0.5)) * scale - np.float32(0.5)
    distances = np.abs(np.arange(side, dtype=np.float32) - centers[:, None])
    reach = max(scale, np.float32(1)) if is_antialiased else np.float32(1)
    shares = np.maximum(1 - distances / reach, 0)
    normalised: NDArray[np.float32] = (shares / shares.sum(axis=1, keepdims=True)).astype(
        np.float32
    )
    return normalised
