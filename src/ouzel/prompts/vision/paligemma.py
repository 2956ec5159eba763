"""PaliGemma reads one square tile of each picture, whose tokens have no marks around them."""

from dataclasses import dataclass
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
from ouzel.prompts.vision.resizing import one_tile, resized
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


@dataclass(frozen=True, slots=True)
class PaliGemmaImageProcessor:
    """Makes one tile of each picture; the detail makes no difference."""

    feature_token: str
    normalisation: Normalisation
    resample: int
    num_tokens: int
    tile_size: tuple[int, int]  # (width, height)

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        check_aspect_ratio(width, height)
        return ImageLayout(self.feature_token * self.num_tokens, self.num_tokens)

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        check_aspect_ratio(*image.size)
        return [one_tile(resized(image, self.tile_size, self.resample))]


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
    return PaliGemmaImageProcessor(
        feature_token=files.token_text("image_token", "<image>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        num_tokens=num_tokens,
        tile_size=(side, side),
    )
