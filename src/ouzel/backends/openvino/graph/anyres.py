"""Joins the features of LLaVA-NeXT and LLaVA-OneVision: the whole image, then its tiles.

The tiles show the image in the best of some resolutions. Reference: transformers,
models/llava_next/modeling_llava_next.py and llava_onevision.

The rows of all tiles but the first are laid out as one grid. Rows that show only the border around
the image are removed again, and a learned row ends each line. OneVision scales the grid down if it
has more rows than a number of tiles.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.vit import VitShape
from ouzel.backends.openvino.vision_model import Join
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import brief
from ouzel.errors import EngineFailed, ModelLoadError
from ouzel.types.engine_request import ImageInput

MAX_RESOLUTIONS = 256
MAX_SURPLUS = 1.1  # a grid whose sides are larger by less than this factor is not scaled down

Grid = NDArray[np.float32]  # [lines, rows in a line, hidden size]
Resolution = tuple[int, int]  # height, width


@dataclass(frozen=True, kw_only=True)
class AnyRes:
    resolutions: list[Resolution]
    tile_size: int  # in pixels
    side: int  # rows of features along each side of a tile
    max_tiles: int | None  # the grid has at most the rows of this many tiles; None: no limit

    @classmethod
    def read(
        cls,
        config: HfConfig,
        vit: VitShape,
        num_rows: int,
        defaults: list[Resolution],
        max_tiles: int | None = None,
    ) -> "AnyRes":
        """Reads the shape; `defaults` are the resolutions if config.json has none.

        A tile has `num_rows` rows of features. Raises ModelLoadError.
        """
        side, tile_size = vit.side, vit.tile_size
        if num_rows != side**2:
            supported = "default" if vit.has_class else "full"
            raise config.refuse(
                "vision_feature_select_strategy", f"{supported}, as a tile must have {side**2} rows"
            )
        resolutions = read_resolutions(config, tile_size, defaults)
        return cls(resolutions=resolutions, tile_size=tile_size, side=side, max_tiles=max_tiles)

    def join(self, newline: NDArray[np.float32]) -> Join:
        """Returns the function that joins the features of an image's tiles."""

        def joined(image: ImageInput, features: list[NDArray[np.float32]]) -> NDArray[np.float32]:
            levels = np.concatenate(features, axis=1)
            return np.stack([self._join_rows(image, rows, newline) for rows in levels])

        return joined

    def _join_rows(
        self, image: ImageInput, rows: NDArray[np.float32], newline: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        whole, others = rows[: self.side**2], rows[self.side**2 :]
        lines = newline[None]
        if len(others):
            lines = with_newlines(self._grid(image, others), newline)
        return np.concatenate([whole, lines])

    def _grid(self, image: ImageInput, rows: NDArray[np.float32]) -> Grid:
        """Lays out the rows of all tiles but the first as a grid, without the border."""
        height, width = best_resolution(image.size, self.resolutions)
        down, across = height // self.tile_size, width // self.tile_size
        if (num_tiles := image.shape[0] - 1) != down * across:
            raise EngineFailed(
                f"an image of {image.size[0]}x{image.size[1]} must have {down * across} tiles by "
                f"image_grid_pinpoints of config.json, the image processor made {num_tiles}"
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
    """Returns the resolution that keeps most of an image's pixels.

    Of several it is the smallest, and of these the first.
    """
    own_height, own_width = size

    def merit(resolution: Resolution) -> tuple[int, int]:
        height, width = resolution
        scale = min(width / own_width, height / own_height)
        num_kept = min(int(own_width * scale) * int(own_height * scale), own_width * own_height)
        return num_kept, num_kept - width * height

    return max(resolutions, key=merit)


def without_borders(grid: Grid, size: Resolution) -> Grid:
    """Removes the lines, or the columns, at both ends that show nothing of the image."""
    (height, width), (lines, columns) = size, grid.shape[:2]
    if width / height > columns / lines:
        border = (lines - int(round(height * (columns / width), 7))) // 2
        return grid[border : lines - border]
    border = (columns - int(round(width * (lines / height), 7))) // 2
    return grid[:, border : columns - border]


def scaled_down(grid: Grid, max_rows: int) -> Grid:
    """Scales the grid down to about `max_rows` rows, if it has clearly more."""
    lines, columns = grid.shape[:2]
    surplus = math.sqrt(lines * columns / max_rows)
    if surplus <= MAX_SURPLUS:
        return grid
    return blended(blended(grid, int(lines // surplus), 0), int(columns // surplus), 1)


def blended(grid: Grid, num: int, axis: int) -> Grid:
    """Resizes one axis to `num` places.

    Each new place blends the two places nearest to its middle. For a very long image `num` may be
    0.
    """
    length = grid.shape[axis]
    points = np.maximum((np.arange(num) + 0.5) * (length / max(num, 1)) - 0.5, 0)
    lower = points.astype(np.int64)
    shares = np.expand_dims((points - lower).astype(np.float32), tuple({0, 1, 2} - {axis}))
    upper = np.minimum(lower + 1, length - 1)
    blend: Grid = grid.take(lower, axis) * (1 - shares) + grid.take(upper, axis) * shares
    return blend


def with_newlines(grid: Grid, newline: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns rows [N, hidden size], one line after the other, each with the learned row at its
    end.
    """
    lines, _, size = grid.shape
    ends = np.broadcast_to(newline, (lines, 1, size))
    return np.concatenate([grid, ends], axis=1).reshape(-1, size)
