"""Computes pictures from a formula, so that none is stored: gradients, edges and noise."""

import functools

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def picture(width: int, height: int) -> Image.Image:
    """Returns a picture in which every channel, row and column differs."""
    return Image.fromarray(_pixels(width, height))


@functools.lru_cache(maxsize=32)  # all families are tested with the same pictures
def _pixels(width: int, height: int) -> NDArray[np.uint8]:
    rows, columns = (np.arange(size, dtype=np.uint64) for size in (height, width))
    return np.stack(
        [_channel(rows[:, None], columns, index, width, height) for index in range(3)], axis=-1
    )


def _channel(
    rows: NDArray[np.uint64], columns: NDArray[np.uint64], index: int, width: int, height: int
) -> NDArray[np.uint8]:
    ramp = (rows * (index + 1) * 160 // height + columns * (3 - index) * 80 // width) % 256
    squares = ((rows // 9 + columns // (7 + index)) % 2) * 60
    mixed = rows * 2654435761 + columns * 2246822519 + index * 3266489917
    noise = ((mixed ^ (mixed >> 13)) * 1274126177 >> 24) % 40
    values: NDArray[np.uint64] = ramp + squares + noise
    return (values % 256).astype(np.uint8)


def sample_positions(num_values: int) -> NDArray[np.int64]:
    """Returns the positions, in flattened pixels, of the values that golden files hold."""
    return np.linspace(0, num_values - 1, min(100, num_values)).astype(np.int64)
