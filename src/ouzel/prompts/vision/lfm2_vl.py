"""LFM2-VL reads a picture in its own shape; a large one in tiles of a grid, and as a thumbnail."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import msgspec
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
    BILINEAR,
    HALVES,
    Channels,
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    Side,
    read_image_settings,
    read_record,
)
from ouzel.prompts.vision.tile_grids import choose_grid, list_grids

_NumTokens = Annotated[int, Meta(ge=1, le=2**16)]
_NumTiles = Annotated[int, Meta(ge=1, le=256)]
_Factor = Annotated[int, Meta(ge=1, le=16)]


class _Settings(PixelSettings, frozen=True, kw_only=True):
    image_mean: Channels = HALVES
    image_std: Channels = HALVES
    resample: Annotated[int, Meta(ge=0, le=5)] = BILINEAR
    downsample_factor: _Factor = 2
    do_image_splitting: bool = True
    min_tiles: _NumTiles = 2
    max_tiles: _NumTiles = 10
    use_thumbnail: bool = True
    min_image_tokens: _NumTokens = 64
    max_image_tokens: _NumTokens = 256
    encoder_patch_size: PatchSide = 16
    tile_size: Side = 512
    max_pixels_tolerance: Annotated[float, Meta(gt=0, le=1000)] = 2.0


class _VisionConfig(msgspec.Struct, frozen=True):
    patch_size: PatchSide = 16


class _Config(msgspec.Struct, frozen=True):
    vision_config: _VisionConfig
    downsample_factor: _Factor = 2


class _Processor(msgspec.Struct, frozen=True):
    use_image_special_tokens: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Lfm2VlImageProcessor:
    feature_token: str
    start_token: str
    end_token: str
    has_marks: bool  # special tokens stand around the picture and before each tile
    normalisation: Normalisation
    resample: int
    patch_side: int  # pixels
    token_side: int  # pixels; a token covers merged patches
    min_tokens: int  # tokens of a picture that is not cut, and of a thumbnail
    max_tokens: int
    tolerance: float  # a picture is cut if it has so many times the pixels of `max_tokens`
    tile_side: int
    grids: Sequence[tuple[int, int]]  # (columns, rows), the smallest first; empty: never cut
    has_thumbnail: bool

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        columns, rows = self._grid(width, height, detail)
        new_width, new_height = self._new_size(width, height)
        num_whole = (new_width // self.token_side) * (new_height // self.token_side)
        whole = self.feature_token * num_whole
        if rows * columns == 1:
            return self._marked(whole, (num_whole,))
        num_tile = (self.tile_side // self.token_side) ** 2
        text = "".join(
            self._mark(f"<|img_row_{row}_col_{column}|>") + self.feature_token * num_tile
            for row in range(1, rows + 1)
            for column in range(1, columns + 1)
        )
        if not self.has_thumbnail:
            return self._marked(text, (rows * columns * num_tile,))
        text += self._mark("<|img_thumbnail|>") + whole
        return self._marked(text, (rows * columns * num_tile, num_whole))

    def _marked(self, text: str, piece_tokens: tuple[int, ...]) -> ImageLayout:
        text = self._mark(self.start_token) + text + self._mark(self.end_token)
        return ImageLayout(text, sum(piece_tokens), piece_tokens=piece_tokens)

    def _mark(self, text: str) -> str:
        return text if self.has_marks else ""

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        columns, rows = self._grid(*image.size, detail)
        whole = one_tile(resized(image, self._new_size(*image.size), self.resample))
        if rows * columns == 1:
            return [whole]
        side = self.tile_side
        large = resized(image, (columns * side, rows * side), self.resample)
        tiles = grid_tiles(large, (side, side))
        return [tiles, whole] if self.has_thumbnail else [tiles]

    def _grid(self, width: int, height: int, detail: Detail) -> tuple[int, int]:
        """Returns the columns and rows of tiles; (1, 1) if the picture is not cut."""
        check_aspect_ratio(width, height)
        side = self.token_side
        rounded = (max(self.patch_side, round(each / side) * side) for each in (width, height))
        is_large = math.prod(rounded) > self.max_tokens * side**2 * self.tolerance
        if detail == "low" or not is_large or not self.grids:
            return 1, 1
        return choose_grid(self.grids, width, height, self.tile_side**2)

    def _new_size(self, width: int, height: int) -> tuple[int, int]:
        """Returns (width, height) within the range of tokens, both multiples of a token's side."""
        side, sizes = self.token_side, (width, height)
        columns, rows = (max(1, round(each / side)) for each in sizes)
        if columns * rows > self.max_tokens:
            shrink = math.sqrt(height * width / (self.max_tokens * side**2))
            columns, rows = (max(1, math.floor(each / shrink / side)) for each in sizes)
        elif columns * rows < self.min_tokens:
            stretch = math.sqrt(self.min_tokens * side**2 / (height * width))
            columns, rows = (math.ceil(each * stretch / side) for each in sizes)
        return columns * side, rows * side


def load(files: ProcessorFiles) -> ImageProcessor:
    # Published files say that nothing is resized, and the reference resizes all the same.
    values = {key: each for key, each in files.image_processor.items() if key != "do_resize"}
    settings = read_image_settings(
        replace(files, image_processor=values), {"Lfm2VlImageProcessor": _Settings}
    )
    _check(settings, files)
    processor = read_record(files.processor, _Processor, files.directory / "processor_config.json")
    cuts = settings.do_image_splitting and (settings.min_tiles, settings.max_tiles) != (1, 1)
    return Lfm2VlImageProcessor(
        feature_token=files.special_tokens.get("image_token", "<image>"),
        start_token=files.special_tokens.get("image_start_token", "<|image_start|>"),
        end_token=files.special_tokens.get("image_end_token", "<|image_end|>"),
        has_marks=processor.use_image_special_tokens,
        normalisation=settings.normalisation(),
        resample=settings.resample,
        patch_side=settings.encoder_patch_size,
        token_side=settings.encoder_patch_size * settings.downsample_factor,
        min_tokens=settings.min_image_tokens,
        max_tokens=settings.max_image_tokens,
        tolerance=settings.max_pixels_tolerance,
        tile_side=settings.tile_size,
        grids=list_grids(settings.min_tiles, settings.max_tiles) if cuts else [],
        has_thumbnail=settings.use_thumbnail,
    )


def _check(settings: _Settings, files: ProcessorFiles) -> None:
    path = files.image_processor_path
    config = read_record(files.config, _Config, files.directory / "config.json")
    for key, found, expected in (
        ("encoder_patch_size", settings.encoder_patch_size, config.vision_config.patch_size),
        ("downsample_factor", settings.downsample_factor, config.downsample_factor),
    ):
        if found != expected:
            raise ModelLoadError(
                f"{path}: {key} must be {expected}, the value in config.json, found {found}"
            )
    side = settings.encoder_patch_size * settings.downsample_factor
    if settings.tile_size % side:
        raise ModelLoadError(
            f"{path}: tile_size must be a multiple of {side}, found {settings.tile_size}"
        )
    if settings.min_tiles > settings.max_tiles:
        raise ModelLoadError(
            f"{path}: min_tiles must be <= max_tiles {settings.max_tiles}, "
            f"found {settings.min_tiles}"
        )
