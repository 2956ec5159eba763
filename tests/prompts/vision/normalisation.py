"""Converts pixels from bytes to the floats of a vision tower."""

import numpy as np
from numpy.typing import NDArray

from ouzel.prompts.vision.base import Normalisation, Tiles


def normalise_tiles(tiles: Tiles, normalisation: Normalisation) -> NDArray[np.float32]:
    """Returns float32 [tiles, 3, height, width].

    A channel has only 256 values, so each value is computed once, with the reference's roundings.
    """
    rescaled = (np.arange(256) * normalisation.rescale).astype(np.float32)
    num_tiles, height, width, num_channels = tiles.shape
    values = np.empty((num_tiles, num_channels, height, width), np.float32)
    for channel, (mean, std) in enumerate(zip(normalisation.mean, normalisation.std, strict=True)):
        table = (rescaled - np.float32(mean)) / np.float32(std)
        np.take(table, tiles[..., channel], out=values[:, channel])
    return values
