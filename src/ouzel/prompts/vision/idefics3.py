"""Idefics 3 and SmolVLM read a grid of square tiles, row by row, and the whole picture as the last
tile.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from PIL import Image

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.base import (
    Detail,
    ImageLayout,
    ImageProcessor,
    Normalisation,
    Tiles,
    check_aspect_ratio,
)
from ouzel.prompts.vision.resizing import grid_tiles, one_tile, resized
from ouzel.prompts.vision.settings import (
    HALVES,
    LANCZOS,
    Channels,
    PixelSettings,
    ProcessorFiles,
    Side,
    read_image_settings,
    read_record,
)

_GLOBAL_MARK = "<global-img>"
_MAX_TILES_PER_SIDE = 32


class _LongestEdge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    longest_edge: Side


class _Settings(PixelSettings, frozen=True, kw_only=True):
    image_mean: Channels = HALVES
    image_std: Channels = HALVES
    resample: Annotated[int, Meta(ge=0, le=5)] = LANCZOS
    size: _LongestEdge = _LongestEdge(4 * 364)
    max_image_size: _LongestEdge = _LongestEdge(364)  # size of a tile
    do_image_splitting: bool = True


class _Processor(msgspec.Struct, frozen=True):
    image_seq_len: Annotated[int, Meta(ge=1, le=2**16)] = 169


@dataclass(frozen=True, slots=True)
class Idefics3ImageProcessor:
    feature_token: str
    edge: str  # the mark before each tile and behind the last one
    normalisation: Normalisation
    resample: int
    tokens_per_tile: int
    longest_edge: int  # longer side of the picture before it is cut into tiles
    tile_side: int
    splits: bool

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        columns, rows = self._grid(*self._scaled(width, height), detail)
        features = self.feature_token * self.tokens_per_tile
        lines: list[str] = []
        for row in range(1, rows + 1):
            tiles = (
                f"{self.edge}<row_{row}_col_{column}>{features}" for column in range(1, columns + 1)
            )
            lines.append("".join(tiles) + "\n")
        blank_line = "\n" if lines else ""
        text = "".join(lines) + f"{blank_line}{self.edge}{_GLOBAL_MARK}{features}{self.edge}"
        return ImageLayout(text, (rows * columns + 1) * self.tokens_per_tile)

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        side = self.tile_side
        image = resized(image, self._scaled(*image.size), self.resample)
        columns, rows = self._grid(*image.size, detail)
        if not rows:
            return [one_tile(resized(image, (side, side), self.resample))]
        image = resized(image, (columns * side, rows * side), self.resample)
        whole = one_tile(resized(image, (side, side), self.resample))
        return [np.concatenate([grid_tiles(image, (side, side)), whole])]

    def _scaled(self, width: int, height: int) -> tuple[int, int]:
        """Returns (width, height) with the configured longer side. The other side is made even, but
        not 0.
        """
        check_aspect_ratio(width, height)
        ratio = width / height
        if width >= height:
            width, height = self.longest_edge, int(self.longest_edge / ratio)
            return width, max(height + height % 2, 1)
        width, height = int(self.longest_edge * ratio), self.longest_edge
        return max(width + width % 2, 1), height

    def _grid(self, width: int, height: int, detail: Detail) -> tuple[int, int]:
        """Returns the columns and rows of tiles for the scaled picture; (0, 0) if one tile is
        enough.
        """
        if detail == "low" or not self.splits:
            return 0, 0
        ratio = width / height
        if width >= height:
            columns = math.ceil(width / self.tile_side)
            rows = math.ceil(int(columns * self.tile_side / ratio) / self.tile_side)
        else:
            rows = math.ceil(height / self.tile_side)
            columns = math.ceil(int(rows * self.tile_side * ratio) / self.tile_side)
        return (columns, rows) if columns > 1 or rows > 1 else (0, 0)


def load(files: ProcessorFiles) -> ImageProcessor:
    by_type = {"Idefics3ImageProcessor": _Settings, "SmolVLMImageProcessor": _Settings}
    settings = read_image_settings(files, by_type)
    processor = read_record(files.processor, _Processor, files.directory / "processor_config.json")
    longest_edge, tile_side = settings.size.longest_edge, settings.max_image_size.longest_edge
    if longest_edge > _MAX_TILES_PER_SIDE * tile_side:
        raise ModelLoadError(
            f"{files.image_processor_path}: size must be at most {_MAX_TILES_PER_SIDE} times "
            f"max_image_size, found {longest_edge} and {tile_side}"
        )
    return Idefics3ImageProcessor(
        feature_token=files.special_tokens.get("image_token", "<image>"),
        edge=files.special_tokens.get("fake_image_token", "<fake_token_around_image>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        tokens_per_tile=processor.image_seq_len,
        longest_edge=longest_edge,
        tile_side=tile_side,
        splits=settings.do_image_splitting,
    )
