"""MiniCPM-V 4.6 reads the whole picture and slices of it, and numbers the pictures of a chat.

Source: transformers, models/minicpmv4_6/image_processing_pil_minicpmv4_6.py and
processing_minicpmv4_6.py.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.settings import (
    HALVES,
    Channels,
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    Side,
    compare_with_config,
    read_image_settings,
    read_record,
)
from ouzel.prompts.vision.slices import SliceMarks, SlicingImageProcessor

_NumSlices = Annotated[int, Meta(ge=0, le=256)]
_Mode = Literal["4x", "16x"]

# patches along each side of a token's square
_PATCHES: dict[_Mode, int] = {"4x": 2, "16x": 4}


class _Settings(PixelSettings, frozen=True, kw_only=True):
    image_mean: Channels = HALVES
    image_std: Channels = HALVES
    max_slice_nums: _NumSlices = 9
    scale_resolution: Side = 448
    patch_size: PatchSide = 14
    slice_mode: bool = True
    downsample_mode: _Mode = "16x"
    use_image_id: bool = True


# Lists, because msgspec 0.22 crashes for a tuple beside an integer with limits.
class _VisionConfig(msgspec.Struct, frozen=True):
    patch_size: PatchSide | Annotated[list[PatchSide], Meta(min_length=2, max_length=2)] = 16


class _Config(msgspec.Struct, frozen=True):
    vision_config: _VisionConfig
    downsample_mode: _Mode = "16x"


class _Processor(msgspec.Struct, frozen=True):
    use_image_id: bool | None = None  # takes precedence over the image processor's


def load(files: ProcessorFiles) -> ImageProcessor:
    settings = read_image_settings(files, {"MiniCPMV4_6ImageProcessor": _Settings})
    _check(settings, files)
    processor = read_record(files.processor, _Processor, files.directory / "processor_config.json")
    has_numbers = (
        settings.use_image_id if processor.use_image_id is None else processor.use_image_id
    )
    unit = settings.patch_size * _PATCHES[settings.downsample_mode]
    feature_token = files.special_tokens.get("image_token", "<|image_pad|>")
    return SlicingImageProcessor(
        placeholder=feature_token,
        feature_token=feature_token,
        marks=_read_marks(files, has_numbers=has_numbers),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        scale=settings.scale_resolution,
        unit=unit,
        max_slices=settings.max_slice_nums if settings.slice_mode else 1,
        token_area=unit**2,
    )


def _read_marks(files: ProcessorFiles, *, has_numbers: bool) -> SliceMarks:
    def pair(kind: str) -> tuple[str, str]:
        return (
            files.special_tokens.get(f"{kind}_start_token", f"<{kind}>"),
            files.special_tokens.get(f"{kind}_end_token", f"</{kind}>"),
        )

    return SliceMarks(
        image=pair("image"),
        slice=pair("slice"),
        number=pair("image_id") if has_numbers else None,
    )


def _check(settings: _Settings, files: ProcessorFiles) -> None:
    """Compares the settings with the encoder's. Raises ModelLoadError if they differ."""
    config = read_record(files.config, _Config, files.directory / "config.json")
    compare_with_config(
        files,
        patch_size=(settings.patch_size, config.vision_config.patch_size),
        downsample_mode=(settings.downsample_mode, config.downsample_mode),
    )
