"""Bytes become the floats that a vision tower reads."""

import numpy as np
from numpy.typing import NDArray

from ouzel.prompts.vision.base import Normalisation, Tiles


def normalised(tiles: Tiles, normalisation: Normalisation) -> NDArray[np.float32]:
    """Returns [tiles, 3, height, width].

    There are but 256 values of a channel, so each is worked out once, with the roundings of the reference.
    """
    rescaled = (np.arange(256) * normalisation.rescale).astype(np.float32)
    num_tiles, height, width, num_channels = tiles.shape
    values = np.empty((num_tiles, num_channels, height, width), np.float32)
    for channel, (mean, std) in enumerate(zip(normalisation.mean, normalisation.std, strict=True)):
        table = (rescaled - np.float32(mean)) / np.float32(std)
        np.take(table, tiles[..., channel], out=values[:, channel])
    return values
