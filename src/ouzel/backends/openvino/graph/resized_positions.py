"""Resizes the learned positions of a square of patches to the rows and columns of an image.

A checkpoint has an embedding for each place of a square of side x side places. The embedding of a
patch of an image is a weighted mean of these, by bilinear interpolation. The weights depend on the
image's rows and columns only: the host computes them, and the graph multiplies them by the table.
Reference: transformers, `resize_positional_embeddings` of models/siglip2 and
`get_vision_interpolation_indices_and_weights`.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.patches import merged_order
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Inputs

INPUT = "position_weights"


def add_positions(b: VisionBuilder, rows: Node, name: str, num_places: int, size: int) -> Node:
    """Adds the resized positions to rows [..., patches, size].

    The tensor `name` has the learned positions, [num_places, size].
    """
    table = b.constant(b.array(name, num_places, size))
    weights = b.input(INPUT, [-1, num_places], ov.Type.f32)
    return ops.add(rows, ops.matmul(weights, table, False, False))


def position_inputs(
    rows: int, columns: int, side: int, merge: int, *, is_antialiased: bool
) -> Inputs:
    """Returns the input of the graph: the weights of all learned positions for each patch,
    [patches, side * side].

    Patches that are merged to one row, squares of merge x merge, follow one another.
    """
    down, across = (_weigh(num, side, is_antialiased=is_antialiased) for num in (rows, columns))
    weights = down[:, None, :, None] * across[None, :, None, :]
    return {INPUT: merged_order(weights.reshape(rows, columns, side**2), merge)}


def _weigh(num: int, side: int, *, is_antialiased: bool) -> NDArray[np.float32]:
    """Returns the weights of `side` learned places for `num` patches in a line, [num, side].

    Each row has the sum 1. If the line has fewer patches than places, each patch is the mean of
    all places near to it with `is_antialiased`, and of the two nearest places without.
    """
    scale = np.float32(side) / np.float32(num)
    centers = (np.arange(num, dtype=np.float32) + np.float32(0.5)) * scale - np.float32(0.5)
    distances = np.abs(np.arange(side, dtype=np.float32) - centers[:, None])
    reach = max(scale, np.float32(1)) if is_antialiased else np.float32(1)
    weights = np.maximum(1 - distances / reach, 0)
    normalised: NDArray[np.float32] = (weights / weights.sum(axis=1, keepdims=True)).astype(
        np.float32
    )
    return normalised
