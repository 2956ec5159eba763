"""MiniCPM-V 2.6 to 4.5 have equally many tokens for a whole picture and for each slice of it.

Their chat templates read texts only: a picture is a line of a text. Source: the checkpoints' own
image_processing_minicpmv.py and processing_minicpmv.py.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.errors import ModelLoadError
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

_PLACEHOLDER = "(<image>./</image>)"
_NumTokens = Annotated[int, Meta(ge=1, le=2**16)]
_Mark = Annotated[str, Meta(min_length=1, max_length=256)]


class _Settings(PixelSettings, frozen=True, kw_only=True):
    """The names of these settings are not transformers'.

    The reference always divides colours by 255 and normalises them.
    """

    image_mean: Channels = msgspec.field(name="norm_mean", default=HALVES)
    image_std: Channels = msgspec.field(name="norm_std", default=HALVES)
    do_rescale: Literal[True] = True
    do_normalize: Literal[True] = True
    max_slice_nums: Annotated[int, Meta(ge=1, le=256)] = 9
    scale_resolution: Side = 448
    patch_size: PatchSide = 14
    image_feature_size: _NumTokens = 64
    slice_mode: Literal[True] = True  # otherwise the reference does not resize a picture
    use_image_id: bool = False
    im_start: _Mark = "<image>"
    im_end: _Mark = "</image>"
    slice_start: _Mark = "<slice>"
    slice_end: _Mark = "</slice>"
    im_id_start: _Mark = "<image_id>"
    im_id_end: _Mark = "</image_id>"
    unk: _Mark = "<unk>"


class _VisionConfig(msgspec.Struct, frozen=True):
    patch_size: PatchSide = 16


class _Config(msgspec.Struct, frozen=True):
    vision_config: _VisionConfig
    query_num: _NumTokens = 64


def load(files: ProcessorFiles) -> ImageProcessor:
    settings = read_image_settings(files, {"MiniCPMVImageProcessor": _Settings})
    _check(settings, files)
    numbers = (settings.im_id_start, settings.im_id_end)
    return SlicingImageProcessor(
        placeholder=_PLACEHOLDER,
        feature_token=settings.unk,
        writes_pictures_as_lines=True,
        marks=SliceMarks(
            image=(settings.im_start, settings.im_end),
            slice=(settings.slice_start, settings.slice_end),
            number=numbers if settings.use_image_id else None,
        ),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        scale=settings.scale_resolution,
        unit=settings.patch_size,
        max_slices=settings.max_slice_nums,
        token_area=0,
        num_queries=settings.image_feature_size,
    )


def _check(settings: _Settings, files: ProcessorFiles) -> None:
    """Compares the settings with the encoder's and the reference's.

    Raises ModelLoadError if they differ.
    """
    config = read_record(files.config, _Config, files.directory / "config.json")
    compare_with_config(
        files,
        patch_size=(settings.patch_size, config.vision_config.patch_size),
        image_feature_size=(settings.image_feature_size, config.query_num),
    )
    if settings.rescale_factor != 1 / 255:
        raise ModelLoadError(
            f"{files.image_processor_path}: rescale_factor must be 1/255, "
            f"found {settings.rescale_factor}"
        )
