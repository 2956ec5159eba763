"""Qwen2-VL and later Qwens read one tile of almost any size, whose sides are multiples of a token's
side.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
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
    NumPixels,
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    read_image_settings,
    read_record,
)

MergeSize = Annotated[int, Meta(ge=1, le=16)]


class PixelRange(msgspec.Struct, frozen=True):
    """Limits the number of pixels; the newer names say edges, but also mean pixels."""

    shortest_edge: NumPixels | None = None
    longest_edge: NumPixels | None = None
    min_pixels: NumPixels | None = None
    max_pixels: NumPixels | None = None


class _Settings(PixelSettings, frozen=True, kw_only=True):
    size: PixelRange = PixelRange()
    min_pixels: NumPixels | None = None  # takes precedence over `size`
    max_pixels: NumPixels | None = None
    patch_size: PatchSide = 14
    merge_size: MergeSize = 2


class _VisionConfig(msgspec.Struct, frozen=True):
    patch_size: PatchSide | None = None
    spatial_merge_size: MergeSize | None = None


class _Config(msgspec.Struct, frozen=True):
    vision_config: _VisionConfig


# makes a small picture larger: takes width, height and a token's side, gives width and height
Enlarge = Callable[[int, int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Qwen2VlImageProcessor:
    feature_token: str
    normalisation: Normalisation
    resample: int
    token_side: int  # pixels; a token covers merged patches
    min_pixels: int  # counts all frames
    max_pixels: int
    num_frames: int = 1  # frames that a picture counts as
    enlarge: Enlarge | None = None

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        new_width, new_height = self._new_size(width, height, detail)
        rows, columns = new_height // self.token_side, new_width // self.token_side
        return ImageLayout(
            self.feature_token * (rows * columns), rows * columns, (1, rows, columns)
        )

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        return [one_tile(resized(image, self._new_size(*image.size, detail), self.resample))]

    def _new_size(self, width: int, height: int, detail: Detail) -> tuple[int, int]:
        """Returns (width, height) within the range of pixels, both rounded to multiples of a
        token's side.
        """
        check_aspect_ratio(width, height)
        side, max_pixels = self.token_side, self.max_pixels
        if self.enlarge is not None:
            width, height = self.enlarge(width, height, side)
        if detail == "low":
            max_pixels = min(max_pixels, self.num_frames * LOW_DETAIL_SIDE**2)
        pixel_range = (min(self.min_pixels, max_pixels), max_pixels)
        return fit_size(width, height, side, pixel_range, self.num_frames)


def fit_size(
    width: int, height: int, side: int, num_pixels: tuple[int, int], num_frames: int = 1
) -> tuple[int, int]:
    """Returns (width, height) as multiples of `side`, with the pixels of all frames within the
    range `num_pixels`.

    Several frames are counted as an even number. Source: transformers, `smart_resize` of the Qwens.
    """
    min_pixels, max_pixels = num_pixels
    rounded = round(width / side) * side, round(height / side) * side
    total = math.prod(rounded) * (1 if num_frames == 1 else round(num_frames / 2) * 2)
    if total > max_pixels:
        shrink = math.sqrt(num_frames * height * width / max_pixels)
        return max(side, _floor(width / shrink, side)), max(side, _floor(height / shrink, side))
    if total < min_pixels:
        stretch = math.sqrt(min_pixels / (num_frames * height * width))
        return _ceil(width * stretch, side), _ceil(height * stretch, side)
    return rounded


def load(files: ProcessorFiles) -> ImageProcessor:
    names = ("Qwen2VLImageProcessor", "Qwen2_5_VLImageProcessor")
    return load_named(files, names, "<|image_pad|>", (56 * 56, 28 * 28 * 1280))


def load_named(
    files: ProcessorFiles,
    names: tuple[str, ...],
    usual_token: str,
    usual_pixels: tuple[int, int],
    enlarge: Enlarge | None = None,
) -> ImageProcessor:
    """Makes the processor; its class in the file has one of the names.

    The usual token and the usual range of pixels count if the files name no others.
    """
    settings = read_image_settings(files, dict.fromkeys(names, _Settings))
    check_patches(files, files.image_processor_path, settings.patch_size, settings.merge_size)
    size, (fewest, most) = settings.size, usual_pixels
    return Qwen2VlImageProcessor(
        feature_token=files.special_tokens.get("image_token", usual_token),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        token_side=settings.patch_size * settings.merge_size,
        min_pixels=settings.min_pixels or size.shortest_edge or size.min_pixels or fewest,
        max_pixels=settings.max_pixels or size.longest_edge or size.max_pixels or most,
        enlarge=enlarge,
    )


def check_patches(files: ProcessorFiles, path: Path, patch_size: int, merge_size: int) -> None:
    """Compares the patch sizes in a file with the vision tower's, if the configuration names them.

    Raises ModelLoadError if they differ.
    """
    vision = read_record(files.config, _Config, files.directory / "config.json").vision_config
    for key, found, tower in (
        ("patch_size", patch_size, vision.patch_size),
        ("merge_size", merge_size, vision.spatial_merge_size),
    ):
        if tower not in (None, found):
            raise ModelLoadError(
                f"{path}: {key} must be {tower}, the value in vision_config, found {found}"
            )


def _floor(length: float, side: int) -> int:
    return math.floor(length / side) * side


def _ceil(length: float, side: int) -> int:
    return math.ceil(length / side) * side
