"""InternVL, as in transformers, reads the grid of tiles closest to the picture's shape, and a
thumbnail.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from PIL import Image

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
    HeightAndWidth,
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    Side,
    read_image_settings,
    read_record,
)
from ouzel.prompts.vision.tile_grids import choose_grid, list_grids

_NumTiles = Annotated[int, Meta(ge=1, le=256)]


class _Settings(PixelSettings, frozen=True, kw_only=True):
    """`crop_to_patches` is ignored, because the reference always sets it."""

    size: Side | HeightAndWidth = HeightAndWidth(384, 384)
    min_patches: _NumTiles = 1
    max_patches: _NumTiles = 12


# Lists, because msgspec 0.22 crashes for a tuple beside an integer with limits.
_TWO = Meta(min_length=2, max_length=2)


class _VisionConfig(msgspec.Struct, frozen=True):
    image_size: Side | Annotated[list[Side], _TWO] = 448  # one side, or height and width
    patch_size: PatchSide | Annotated[list[PatchSide], _TWO] = 14


class _Config(msgspec.Struct, frozen=True):
    vision_config: _VisionConfig
    downsample_ratio: Annotated[float, Meta(gt=0, le=1)] = 0.5


class _Processor(msgspec.Struct, frozen=True):
    image_seq_length: Annotated[int, Meta(ge=1, le=2**16)] | None = None


@dataclass(frozen=True, slots=True)
class InternVlImageProcessor:
    feature_token: str
    start_token: str
    end_token: str
    normalisation: Normalisation
    resample: int
    tokens_per_tile: int
    tile_size: tuple[int, int]  # (width, height)
    grids: Sequence[tuple[int, int]]  # (columns, rows), the smallest first

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        columns, rows = self._grid(width, height, detail)
        num_tiles = rows * columns + int(rows * columns > 1)
        num_tokens = num_tiles * self.tokens_per_tile
        return ImageLayout(
            f"{self.start_token}{self.feature_token * num_tokens}{self.end_token}", num_tokens
        )

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        columns, rows = self._grid(*image.size, detail)
        width, height = self.tile_size
        whole = one_tile(resized(image, self.tile_size, self.resample))
        if rows * columns == 1:
            return [whole]
        large = resized(image, (columns * width, rows * height), self.resample)
        return [np.concatenate([grid_tiles(large, self.tile_size), whole])]

    def _grid(self, width: int, height: int, detail: Detail) -> tuple[int, int]:
        """Returns the columns and rows of tiles."""
        check_aspect_ratio(width, height)
        if detail == "low":
            return 1, 1
        return choose_grid(self.grids, width, height, self.tile_size[0] * self.tile_size[1])


def load(files: ProcessorFiles) -> ImageProcessor:
    settings = read_image_settings(files, {"GotOcr2ImageProcessor": _Settings})
    config = read_record(files.config, _Config, files.directory / "config.json")
    processor = read_record(files.processor, _Processor, files.directory / "processor_config.json")
    size = settings.size
    return InternVlImageProcessor(
        feature_token=files.special_tokens.get("context_image_token", "<IMG_CONTEXT>"),
        start_token=files.special_tokens.get("start_image_token", "<img>"),
        end_token=files.special_tokens.get("end_image_token", "</img>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        tokens_per_tile=processor.image_seq_length or _tokens_per_tile(config),
        tile_size=(size, size) if isinstance(size, int) else (size.width, size.height),
        grids=list_grids(settings.min_patches, settings.max_patches),
    )


def _tokens_per_tile(config: _Config) -> int:
    image_size, patch_size = config.vision_config.image_size, config.vision_config.patch_size
    height, width = [image_size] * 2 if isinstance(image_size, int) else image_size
    patch_height, patch_width = [patch_size] * 2 if isinstance(patch_size, int) else patch_size
    return int((height // patch_height) * (width // patch_width) * config.downsample_ratio**2)
