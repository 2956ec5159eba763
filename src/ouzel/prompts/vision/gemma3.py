"""Gemma 3 reads one square tile, and crops of long pictures if the checkpoint turns pan and scan
on.
"""

import math
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
from ouzel.prompts.vision.resizing import one_tile, resized
from ouzel.prompts.vision.settings import (
    BILINEAR,
    HALVES,
    Channels,
    HeightAndWidth,
    PixelSettings,
    ProcessorFiles,
    Side,
    read_image_settings,
    read_record,
)

_NumTokens = Annotated[int, Meta(ge=1, le=2**16)]


class _Settings(PixelSettings, frozen=True, kw_only=True):
    image_mean: Channels = HALVES
    image_std: Channels = HALVES
    resample: Annotated[int, Meta(ge=0, le=5)] = BILINEAR
    size: HeightAndWidth = HeightAndWidth(224, 224)
    do_pan_and_scan: bool = False
    pan_and_scan_min_crop_size: Side = 256
    pan_and_scan_max_num_crops: Annotated[int, Meta(ge=2, le=64)] = 4
    pan_and_scan_min_ratio_to_activate: Annotated[float, Meta(ge=1)] = 1.2


class _Config(msgspec.Struct, frozen=True):
    mm_tokens_per_image: _NumTokens = 256


class _Processor(msgspec.Struct, frozen=True):
    image_seq_length: _NumTokens | None = None


@dataclass(frozen=True, slots=True)
class PanAndScan:
    """Holds the settings for crops of long pictures."""

    min_crop_side: int
    max_num_crops: int
    min_ratio: float

    def boxes(self, width: int, height: int) -> list[tuple[int, int, int, int]]:
        """Returns (left, top, right, bottom) of the crops along the longer side; none for a usual
        shape.
        """
        longer, shorter = max(width, height), min(width, height)
        if longer / shorter < self.min_ratio:
            return []
        num_crops = min(longer // self.min_crop_side, math.floor(longer / shorter + 0.5))
        num_crops = min(self.max_num_crops, max(2, num_crops))
        length = math.ceil(longer / num_crops)
        if min(length, shorter) < self.min_crop_side:
            return []
        spans = [(length * crop, min(length * (crop + 1), longer)) for crop in range(num_crops)]
        if width >= height:
            return [(start, 0, end, height) for start, end in spans]
        return [(0, start, width, end) for start, end in spans]


@dataclass(frozen=True, slots=True)
class Gemma3ImageProcessor:
    placeholder: str
    feature_token: str
    end_token: str
    normalisation: Normalisation
    resample: int
    tokens_per_tile: int
    tile_size: tuple[int, int]  # (width, height)
    pan_and_scan: PanAndScan | None

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        picture = f"{self.placeholder}{self.feature_token * self.tokens_per_tile}{self.end_token}"
        tile = f"\n\n{picture}\n\n"
        num_crops = len(self._crops(width, height, detail))
        if not num_crops:
            return ImageLayout(tile, self.tokens_per_tile)
        crops = " ".join([tile] * num_crops)
        text = (
            f"Here is the original image {tile} "
            f"and here are some crops to help you see better {crops}"
        )
        return ImageLayout(text, (1 + num_crops) * self.tokens_per_tile)

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        pictures = [image, *(image.crop(box) for box in self._crops(*image.size, detail))]
        return [
            np.concatenate(
                [one_tile(resized(picture, self.tile_size, self.resample)) for picture in pictures]
            )
        ]

    def _crops(self, width: int, height: int, detail: Detail) -> list[tuple[int, int, int, int]]:
        check_aspect_ratio(width, height)
        if self.pan_and_scan is None or detail == "low":
            return []
        return self.pan_and_scan.boxes(width, height)


def load(files: ProcessorFiles) -> ImageProcessor:
    settings = read_image_settings(files, {"Gemma3ImageProcessor": _Settings})
    config = read_record(files.config, _Config, files.directory / "config.json")
    processor = read_record(files.processor, _Processor, files.directory / "processor_config.json")
    pan_and_scan = PanAndScan(
        settings.pan_and_scan_min_crop_size,
        settings.pan_and_scan_max_num_crops,
        settings.pan_and_scan_min_ratio_to_activate,
    )
    return Gemma3ImageProcessor(
        placeholder=files.special_tokens.get("boi_token", "<start_of_image>"),
        feature_token=files.special_tokens.get("image_token", "<image_soft_token>"),
        end_token=files.special_tokens.get("eoi_token", "<end_of_image>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        tokens_per_tile=processor.image_seq_length or config.mm_tokens_per_image,
        tile_size=(settings.size.width, settings.size.height),
        pan_and_scan=pan_and_scan if settings.do_pan_and_scan else None,
    )
