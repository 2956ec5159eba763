"""Embeds images of any size with learned positions of a square: each patch has the nearest one.

Reference: transformers, `get_vision_nearest_position_ids`. It compares fractions in single
precision. Here the numbers are exact, which differs for no square of 70 positions, as all published
checkpoints have.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, gather
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import TOWER, VitShape
from ouzel.backends.openvino.library import ops, ov

INPUT = "places"


def embed_patches(b: VisionBuilder, shape: VitShape) -> Node:
    """Embeds the patches [tiles, patches, numbers of a patch] of tiles of one shape, and adds the
    positions.
    """
    prefix, size = f"{TOWER}embeddings.", shape.hidden_size
    kernel = (size, 3, shape.patch_size, shape.patch_size)
    pixels = b.input("patches", [-1, -1, int(np.prod(kernel[1:]))], ov.Type.f32)
    rows = b.patches(pixels, prefix + "patch_embedding", kernel, has_bias=True)
    table = b.constant(b.array(prefix + "position_embedding.weight", shape.num_rows, size))
    return ops.add(rows, gather(table, b.input(INPUT, [-1], ov.Type.i64)))


def nearest_places(rows: int, columns: int, side: int) -> NDArray[np.int64]:
    """Returns the number of the learned position of each patch, [rows, columns].

    The square has `side` positions along each side.
    """
    down, across = (np.arange(num, dtype=np.int64) * side // num for num in (rows, columns))
    return down[:, None] * side + across
