"""Cuts images of any size into patches, and computes attention among all patches of an image.

Patches come merged square after merged square, each square's patches row by row; so rows of
features follow reading order. One pass is one image: all its patches attend to each other without a
mask, and are rotated by their place.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, integers, part, real
from ouzel.backends.openvino.graph.vision import attend
from ouzel.backends.openvino.library import ops
from ouzel.errors import EngineFailed


def merged_order(grid: NDArray[np.generic], merge: int) -> NDArray[np.generic]:
    """Brings [rows, columns, ...] into the order of patches."""
    rows, columns = (side // merge for side in grid.shape[:2])
    squares = grid.reshape(rows, merge, columns, merge, *grid.shape[2:]).swapaxes(1, 2)
    return squares.reshape(rows * columns * merge**2, *grid.shape[2:])


def count_patches(pixels: NDArray[np.float32], patch_size: int, unit: int) -> tuple[int, int]:
    """Counts the rows and columns of patches of pixels [tiles, 3, height, width].

    Raises EngineFailed unless height and width are multiples of `unit`.
    """
    height, width = pixels.shape[2:]
    if height % unit or width % unit:
        raise EngineFailed(
            f"the sides of images must be multiples of {unit}, found {height}x{width}"
        )
    return height // patch_size, width // patch_size


def patch_grids(pixels: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    """Turns [tiles, 3, height, width] into [tiles, rows, columns, numbers of a patch].

    Pixels beyond the last whole patch are left out.
    """
    rows, columns = (side // size for side in pixels.shape[2:])
    cut = pixels[:, :, : rows * size, : columns * size].reshape(-1, 3, rows, size, columns, size)
    return cut.transpose(0, 2, 4, 1, 3, 5).reshape(-1, rows, columns, 3 * size**2)


def colours_side_by_side(patches: NDArray[np.float32]) -> NDArray[np.float32]:
    """Brings the three colours of each pixel side by side, in patches [..., numbers of a patch]."""
    split = patches.reshape(*patches.shape[:-1], 3, -1)
    return split.swapaxes(-1, -2).reshape(patches.shape)


def turned(heads: Node, cos: Node, sin: Node, head_dim: int) -> Node:
    """Turns heads [patches, heads, head_dim] by cosines and sines."""
    first, second = part(heads, 0, head_dim // 2, 2), part(heads, head_dim // 2, 2**31 - 1, 2)
    across = ops.concat([ops.multiply(second, real(-1.0)), first], -1)
    return ops.add(ops.multiply(heads, cos), ops.multiply(across, sin))


def all_see_all(query: Node, key: Node, value: Node) -> Node:
    """Computes attention among all patches; takes and returns [patches, heads, head_dim]."""
    heads = (
        ops.unsqueeze(ops.transpose(each, integers(1, 0, 2)), integers(0))
        for each in (query, key, value)
    )
    return ops.squeeze(ops.transpose(attend(*heads), integers(0, 2, 1, 3)), integers(0))
