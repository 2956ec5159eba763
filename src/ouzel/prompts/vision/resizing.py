"""Resizes, crops and pads pictures without converting their bytes."""

import numpy as np
from PIL import Image

from ouzel.prompts.vision.base import Tiles

_MAX_SQUARE_SIDE = 10_000  # a square of 300 MB


def resized(image: Image.Image, size: tuple[int, int], resample: int) -> Image.Image:
    """Resizes a picture to (width, height); `resample` is the number of Pillow's filter."""
    return image.resize(size, Image.Resampling(resample))


def center_crop(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Cuts (width, height) out of the middle of a picture that is at least as large."""
    left, top = (image.width - size[0]) // 2, (image.height - size[1]) // 2
    return image.crop((left, top, left + size[0], top + size[1]))


def check_square_side(width: int, height: int) -> None:
    if (longer := max(width, height)) > _MAX_SQUARE_SIDE:
        raise ValueError(f"the longer side must be <= {_MAX_SQUARE_SIDE} pixels, given {longer}")


def padded_to_square(image: Image.Image, color: tuple[int, int, int]) -> Image.Image:
    side = max(image.size)
    return padded(image, (side, side), color)


def padded(
    image: Image.Image, size: tuple[int, int], color: tuple[int, int, int] = (0, 0, 0)
) -> Image.Image:
    """Puts the picture in the middle of a canvas of (width, height)."""
    canvas = Image.new("RGB", size, color)
    canvas.paste(image, ((size[0] - image.width) // 2, (size[1] - image.height) // 2))
    return canvas


def one_tile(image: Image.Image) -> Tiles:
    return np.asarray(image)[None]


def grid_tiles(image: Image.Image, tile_size: tuple[int, int]) -> Tiles:
    """Cuts a picture row by row into tiles of (width, height), which divide its sides exactly."""
    width, height = tile_size
    rows, columns = image.height // height, image.width // width
    pixels = np.asarray(image).reshape(rows, height, columns, width, 3)
    return pixels.swapaxes(1, 2).reshape(rows * columns, height, width, 3)
