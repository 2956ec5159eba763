"""Pixtral and Mistral 3 read one tile in the picture's own shape; a mark in the prompt ends each
row of tokens.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta
from PIL import Image

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.base import (
    LOW_DETAIL_SIDE,
    Detail,
    ImageLayout,
    ImageProcessor,
    Normalisation,
    Tiles,
    check_aspect_ratio,
)
from ouzel.prompts.vision.resizing import one_tile, resized
from ouzel.prompts.vision.settings import (
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    Side,
    read_image_settings,
    read_record,
)

_MergeSize = Annotated[int, Meta(ge=1, le=16)]


class _Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    longest_edge: Side | None = None
    height: Side | None = None
    width: Side | None = None


class _Settings(PixelSettings, frozen=True, kw_only=True):
    size: Side | _Size = _Size(longest_edge=1024)


class _VisionConfig(msgspec.Struct, frozen=True):
    model_type: str = "pixtral"
    patch_size: PatchSide = 16


class _Config(msgspec.Struct, frozen=True):
    vision_config: _VisionConfig
    spatial_merge_size: _MergeSize | None = None


class _Processor(msgspec.Struct, frozen=True):
    patch_size: PatchSide | None = None
    spatial_merge_size: _MergeSize | None = None
    image_token: str = "[IMG]"
    image_break_token: str = "[IMG_BREAK]"
    image_end_token: str = "[IMG_END]"


@dataclass(frozen=True, slots=True)
class PixtralImageProcessor:
    feature_token: str
    row_end: str
    image_end: str
    normalisation: Normalisation
    resample: int
    token_side: int  # pixels; a token covers merged patches
    max_size: tuple[int, int]  # (width, height)

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        new_width, new_height = self._new_size(width, height, detail)
        rows, columns = new_height // self.token_side, new_width // self.token_side
        row = self.feature_token * columns
        return ImageLayout(self.row_end.join([row] * rows) + self.image_end, rows * columns)

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        return [one_tile(resized(image, self._new_size(*image.size, detail), self.resample))]

    def _new_size(self, width: int, height: int, detail: Detail) -> tuple[int, int]:
        """Returns (width, height) within the largest size, both rounded up to multiples of a
        token's side.
        """
        check_aspect_ratio(width, height)
        max_width, max_height = self.max_size
        if detail == "low":
            max_width = min(max_width, LOW_DETAIL_SIDE)
            max_height = min(max_height, LOW_DETAIL_SIDE)
        ratio = max(height / max_height, width / max_width)
        if ratio > 1:
            width, height = max(1, math.floor(width / ratio)), max(1, math.floor(height / ratio))
        side = self.token_side
        return ((width - 1) // side + 1) * side, ((height - 1) // side + 1) * side


def is_tower(files: ProcessorFiles) -> bool:
    """Tells whether the vision tower of a LLaVA checkpoint is Pixtral's."""
    vision = files.config.get("vision_config")
    return isinstance(vision, dict) and vision.get("model_type") == "pixtral"


def load(files: ProcessorFiles) -> ImageProcessor:
    settings = read_image_settings(files, {"PixtralImageProcessor": _Settings})
    config = read_record(files.config, _Config, files.directory / "config.json")
    processor = read_record(files.processor, _Processor, files.directory / "processor_config.json")
    own_merge_size = 2 if files.model_type == "mistral3" else 1
    merge_size = processor.spatial_merge_size or config.spatial_merge_size or own_merge_size
    return PixtralImageProcessor(
        feature_token=processor.image_token,
        row_end=processor.image_break_token,
        image_end=processor.image_end_token,
        normalisation=settings.normalisation(),
        resample=settings.resample,
        token_side=(processor.patch_size or config.vision_config.patch_size) * merge_size,
        max_size=_max_size(settings, files),
    )


def _max_size(settings: _Settings, files: ProcessorFiles) -> tuple[int, int]:
    size = settings.size
    if isinstance(size, int):
        return size, size
    if size.longest_edge is not None:
        return size.longest_edge, size.longest_edge
    if size.width is None or size.height is None:
        raise ModelLoadError(
            f"{files.image_processor_path}: size must have longest_edge, or height and width"
        )
    return size.width, size.height
