"""PaliGemma reads one square tile of each picture, whose tokens have no marks around them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.llava import LlavaImageProcessor
from ouzel.prompts.vision.settings import (
    HALVES,
    Channels,
    HeightAndWidth,
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    Side,
    read_image_settings,
    read_record,
)


class _Settings(PixelSettings, frozen=True, kw_only=True):
    image_mean: Channels = HALVES
    image_std: Channels = HALVES
    size: HeightAndWidth = HeightAndWidth(224, 224)
    image_seq_length: Annotated[int, Meta(ge=1, le=2**16)] | None = None


class _Vision(msgspec.Struct, frozen=True):
    image_size: Side = 224
    patch_size: PatchSide = 16


class _Config(msgspec.Struct, frozen=True):
    vision_config: _Vision


def load(files: ProcessorFiles) -> ImageProcessor:
    settings = read_image_settings(files, {"SiglipImageProcessor": _Settings})
    vision = read_record(files.config, _Config, files.directory / "config.json").vision_config
    num_tokens = (vision.image_size // vision.patch_size) ** 2
    if settings.image_seq_length not in (None, num_tokens):
        raise ModelLoadError(
            f"{files.image_processor_path}: image_seq_length must be {num_tokens}, the number of "
            f"patches of a tile, found {settings.image_seq_length}"
        )
    side = vision.image_size
    if settings.size != HeightAndWidth(side, side):
        raise ModelLoadError(
            f"{files.image_processor_path}: size must be {side}x{side}, the image_size in "
            f"vision_config, found {settings.size.height}x{settings.size.width}"
        )
    return LlavaImageProcessor(
        feature_token=files.token_text("image_token", "<image>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        num_tokens=num_tokens,
        tile_size=(side, side),
        shortest_edge=None,
        background=None,
    )
