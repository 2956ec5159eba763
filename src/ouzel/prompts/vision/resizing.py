"""Pictures are resized, cut and padded, still as bytes."""

import numpy as np
from PIL import Image

from ouzel.prompts.vision.base import Tiles


def resized(image: Image.Image, size: tuple[int, int], resample: int) -> Image.Image:
    """Resizes to (width, height); `resample` is the number of a Pillow filter."""
    return image.resize(size, Image.Resampling(resample))


def one_tile(image: Image.Image) -> Tiles:
    return np.asarray(image)[None]
