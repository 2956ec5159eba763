"""Gemma 4 reads one tile in the picture's own shape, as large as the number of tokens allows."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

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
from ouzel.prompts.vision.resizing import one_tile, resized
from ouzel.prompts.vision.settings import (
    Channels,
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    read_image_settings,
)

# The model's smallest number of tokens; the next, 140, is more than 512 x 512 pixels.
_LOW_DETAIL_TOKENS = 70


class _Settings(PixelSettings, frozen=True, kw_only=True):
    image_mean: Channels = (0.0, 0.0, 0.0)
    image_std: Channels = (1.0, 1.0, 1.0)
    do_normalize: bool = False
    patch_size: PatchSide = 16
    max_soft_tokens: Literal[70, 140, 280, 560, 1120] = 280
    pooling_kernel_size: Annotated[int, Meta(ge=1, le=16)] = 3


@dataclass(frozen=True, slots=True)
class Gemma4ImageProcessor:
    feature_token: str
    start_token: str
    end_token: str
    normalisation: Normalisation
    resample: int
    patch_side: int
    pooling_side: int  # a token covers a square with this many patches on each side
    max_tokens: int

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        new_width, new_height = self._new_size(width, height, detail)
        side = self.patch_side * self.pooling_side
        num_tokens = (new_width // side) * (new_height // side)
        return ImageLayout(
            f"{self.start_token}{self.feature_token * num_tokens}{self.end_token}", num_tokens
        )

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        return [one_tile(resized(image, self._new_size(*image.size, detail), self.resample))]

    def _new_size(self, width: int, height: int, detail: Detail) -> tuple[int, int]:
        """Returns the largest (width, height) with the picture's aspect ratio within the limit of
        tokens.
        """
        check_aspect_ratio(width, height)
        max_tokens = self.max_tokens
        if detail == "low":
            max_tokens = min(max_tokens, _LOW_DETAIL_TOKENS)
        side = self.patch_side * self.pooling_side
        scale = math.sqrt(max_tokens * self.pooling_side**2 * self.patch_side**2 / (height * width))
        columns, rows = math.floor(scale * width / side), math.floor(scale * height / side)
        if rows == 0:  # the picture is longer than a row of `max_tokens` squares
            columns, rows = max_tokens, 1
        elif columns == 0:
            columns, rows = 1, max_tokens
        return columns * side, rows * side


def load(files: ProcessorFiles) -> ImageProcessor:
    settings = read_image_settings(files, {"Gemma4ImageProcessor": _Settings})
    return Gemma4ImageProcessor(
        feature_token=files.special_tokens.get("image_token", "<|image|>"),
        start_token=files.special_tokens.get("boi_token", "<|image>"),
        end_token=files.special_tokens.get("eoi_token", "<image|>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        patch_side=settings.patch_size,
        pooling_side=settings.pooling_kernel_size,
        max_tokens=settings.max_soft_tokens,
    )
