"""LLaVA-NeXT and LLaVA-OneVision see the whole picture, and then tiles of it in the best of some
resolutions.

Reference: transformers, models/llava_next/modeling_llava_next.py and llava_onevision.

The rows of all tiles but the first are laid out as one grid. What is only border of the picture is
taken away again, and a learned row ends each line. OneVision scales the grid down where it has more
rows than so many tiles.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.llava import TileFeatures
from ouzel.backends.openvino.vision_model import Join
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import brief
from ouzel.errors import EngineFailed, ModelLoadError
from ouzel.types.engine_request import ImageInput

MAX_RESOLUTIONS = 256
MAX_SURPLUS = 1.1  # of a side: only what is more is scaled down

Grid = NDArray[np.float32]  # [lines, rows in a line, hidden size]
Resolution = tuple[int, int]  # height, width


@dataclass(frozen=True, kw_only=True)
class AnyRes:
    resolutions: list[Resolution]
    tile_size: int  # in pixels
    side: int  # rows of features along each side of a tile
    max_tiles: int | None  # whose rows are kept, beside those of the first; None: all

    @classmethod
    def read(
        cls,
        config: HfConfig,
        shape: TileFeatures,
        defaults: list[Resolution],
        max_tiles: int | None = None,
    ) -> "AnyRes":
        """`defaults` are the resolutions where config.json has none."""
        side, tile_size = shape.vit.side, shape.vit.tile_size
        if shape.num_rows != side**2:
            supported = "default" if shape.vit.has_class else "full"
            raise config.refuse(
                "vision_feature_select_strategy", f"{supported}, as a tile must have {side**2} rows"
            )
        resolutions = read_resolutions(config, tile_size, defaults)
        return cls(resolutions=resolutions, tile_size=tile_size, side=side, max_tiles=max_tiles)

    def join(self, newline: NDArray[np.float32]) -> Join:
        def joined(image: ImageInput, features: list[NDArray[np.float32]]) -> NDArray[np.float32]:
            rows = np.concatenate(features, axis=1)[0]
            whole, others = rows[: self.side**2], rows[self.side**2 :]
            lines = (
                [with_newlines(self._grid(image, others), newline)]
                if len(others)
                else [newline[None]]
            )
            return np.concatenate([whole, *lines])[None]

        return joined

    def _grid(self, image: ImageInput, rows: NDArray[np.float32]) -> Grid:
        """Lays out the rows of all tiles but the first."""
        height, width = best_resolution(image.size, self.resolutions)
        down, across = height // self.tile_size, width // self.tile_size
        if (num_tiles := image.shape[0] - 1) != down * across:
            raise EngineFailed(
                f"a picture of {image.size[0]}x{image.size[1]} must have {down * across} tiles by "
                "image_grid_pinpoints "
                f"of config.json, the image processor's are {num_tiles}"
            )
        tiles = rows.reshape(down, across, self.side, self.side, -1)
        grid = tiles.swapaxes(1, 2).reshape(down * self.side, across * self.side, -1)
        grid = without_borders(grid, image.size)
        return grid if self.max_tiles is None else scaled_down(grid, self.max_tiles * self.side**2)


def read_resolutions(
    config: HfConfig, tile_size: int, defaults: list[Resolution]
) -> list[Resolution]:
    key = "image_grid_pinpoints"
    values = config.values.get(key)
    if values is None:
        values = [list(each) for each in defaults]
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_RESOLUTIONS:
        raise ModelLoadError(
            f"config.json: {key} must be a list of 1 to {MAX_RESOLUTIONS} resolutions, found "
            f"{brief(values)}"
        )
    resolutions = []
    for value in values:
        height, width = config.with_values(**{key: value}).integers(key, 2)
        if min(height, width) < 1 or height % tile_size or width % tile_size:
            raise ModelLoadError(
                f"config.json: {key} must be multiples of image_size {tile_size}, found "
                f"{height}x{width}"
            )
        resolutions.append((height, width))
    return resolutions


def best_resolution(size: Resolution, resolutions: list[Resolution]) -> Resolution:
    """Returns the one that keeps most of a picture's pixels; of several the smallest, and of these
    the first.
    """
    own_height, own_width = size

    def merit(resolution: Resolution) -> tuple[int, int]:
        height, width = resolution
        scale = min(width / own_width, height / own_height)
        num_kept = min(int(own_width * scale) * int(own_height * scale), own_width * own_height)
        return num_kept, num_kept - width * height

    return max(resolutions, key=merit)


def without_borders(grid: Grid, size: Resolution) -> Grid:
    """Takes away as many lines above and below, or rows at both ends of all lines, as show nothing
    of the picture.
    """
    (height, width), (lines, columns) = size, grid.shape[:2]
    if width / height > columns / lines:
        border = (lines - int(round(height * (columns / width), 7))) // 2
        return grid[border : lines - border]
    border = (columns - int(round(width * (lines / height), 7))) // 2
    return grid[:, border : columns - border]


def scaled_down(grid: Grid, max_rows: int) -> Grid:
    lines, columns = grid.shape[:2]
    surplus = math.sqrt(lines * columns / max_rows)
    if surplus <= MAX_SURPLUS:
        return grid
    return blended(blended(grid, int(lines // surplus), 0), int(columns // surplus), 1)


def blended(grid: Grid, num: int, axis: int) -> Grid:
    """Resizes one axis to `num`: each new place has a blend of the two that are nearest to its
    middle.

    A very long picture may have none left.
    """
    length = grid.shape[axis]
    points = np.maximum((np.arange(num) + 0.5) * (length / max(num, 1)) - 0.5, 0)
    lower = points.astype(np.int64)
    shares = np.expand_dims((points - lower).astype(np.float32), tuple({0, 1, 2} - {axis}))
    upper = np.minimum(lower + 1, length - 1)
    blend: Grid = grid.take(lower, axis) * (1 - shares) + grid.take(upper, axis) * shares
    return blend


def with_newlines(grid: Grid, newline: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns rows [N, hidden size], one line after the other."""
    lines, _, size = grid.shape
    ends = np.broadcast_to(newline, (lines, 1, size))
    return np.concatenate([grid, ends], axis=1).reshape(-1, size)
