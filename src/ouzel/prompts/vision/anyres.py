"""The tiling of LLaVA-NeXT and LLaVA-OneVision: a picture is fitted into the best of some
resolutions.

The first tile is the whole picture, squeezed. For the other tiles, the picture is scaled to fit
into the resolution, with black borders. Features that cover only border are left out, in whole rows
or columns, and a mark follows each row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from PIL import Image

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.base import Tiles
from ouzel.prompts.vision.resizing import grid_tiles, one_tile, padded, resized
from ouzel.prompts.vision.settings import ProcessorFiles, Side

# (height, width) in pixels
Resolutions = Annotated[list[tuple[Side, Side]], Meta(min_length=1, max_length=256)]


@dataclass(frozen=True, slots=True)
class AnyRes:
    """Cuts pictures into tiles of the best of a checkpoint's resolutions."""

    resolutions: Sequence[tuple[int, int]]  # (height, width), multiples of the tile's side
    tile_side: int
    patches_per_side: int  # number on each side of a tile

    def tiles(self, image: Image.Image, resample: int) -> Tiles:
        side = self.tile_side
        whole = one_tile(resized(image, (side, side), resample))
        resolution = self.best_resolution(*image.size)
        fitted = resized(image, _fitted(*image.size, resolution), resample)
        return np.concatenate([whole, grid_tiles(padded(fitted, resolution[::-1]), (side, side))])

    def best_resolution(self, width: int, height: int) -> tuple[int, int]:
        """Returns the allowed (height, width) that loses the fewest pixels of the picture.

        If several are equally good, the smallest is returned.
        """

        def merit(resolution: tuple[int, int]) -> tuple[int, int]:
            scale = min(resolution[1] / width, resolution[0] / height)
            used = min(int(width * scale) * int(height * scale), width * height)
            return used, used - resolution[0] * resolution[1]

        return max(self.resolutions, key=merit)

    def feature_grid(self, width: int, height: int) -> tuple[int, int]:
        """Returns the rows and columns of features behind the first tile's, without the borders."""
        best_height, best_width = self.best_resolution(width, height)
        rows = self.patches_per_side * (best_height // self.tile_side)
        columns = self.patches_per_side * (best_width // self.tile_side)
        if width / height > columns / rows:
            new_rows = int(round(height * (columns / width), 7))
            return rows - (rows - new_rows) // 2 * 2, columns
        new_columns = int(round(width * (rows / height), 7))
        return rows, columns - (columns - new_columns) // 2 * 2


def check_resolutions(
    resolutions: list[tuple[int, int]], tile_side: int, files: ProcessorFiles
) -> None:
    for height, width in resolutions:
        if height % tile_side or width % tile_side:
            raise ModelLoadError(
                f"{files.image_processor_path}: image_grid_pinpoints must be multiples of "
                f"{tile_side}, found {height}x{width}"
            )


def _fitted(width: int, height: int, resolution: tuple[int, int]) -> tuple[int, int]:
    """Returns (width, height) of the picture, scaled to fit into `resolution` (height, width)."""
    max_height, max_width = resolution
    by_width, by_height = max_width / width, max_height / height
    if by_width < by_height:
        return max_width, min(math.ceil(height * by_width), max_height)
    return min(math.ceil(width * by_height), max_width), max_height
