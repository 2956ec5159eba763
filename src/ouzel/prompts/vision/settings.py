"""Reads the settings of image and video processors from a model directory, with the reference's
defaults.

A key with the value null counts as missing. An impossible value raises a `ModelLoadError` that
names the file and the key.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from ouzel.checkpoint.model_files import (
    JsonObject,
    brief,
    read_config_json,
    read_json_object,
    read_special_tokens,
)
from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.base import Normalisation

Side = Annotated[int, Meta(ge=1, le=4096)]  # side of a picture in pixels
NumPixels = Annotated[int, Meta(ge=1, le=2**26)]
PatchSide = Annotated[int, Meta(ge=1, le=256)]
Channels = tuple[float, float, float]

CLIP_MEAN: Channels = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD: Channels = (0.26862954, 0.26130258, 0.27577711)
HALVES: Channels = (0.5, 0.5, 0.5)
BICUBIC, BILINEAR, LANCZOS = 3, 2, 1  # Pillow's numbers of filters, as in the files

_SUFFIXES = ("Fast", "Pil")  # name other implementations of the same image processor


class PixelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the settings of all image processors, with the defaults of CLIP."""

    image_mean: Channels = CLIP_MEAN
    image_std: Channels = CLIP_STD
    rescale_factor: float = 1 / 255
    resample: Annotated[int, Meta(ge=0, le=5)] = BICUBIC
    do_resize: bool = True
    do_rescale: bool = True
    do_normalize: bool = True

    def normalisation(self) -> Normalisation:
        rescale = self.rescale_factor if self.do_rescale else 1.0
        if not self.do_normalize:
            return Normalisation(rescale, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        return Normalisation(rescale, self.image_mean, self.image_std)


class HeightAndWidth(msgspec.Struct, frozen=True):
    height: Side
    width: Side


@dataclass(frozen=True, slots=True)
class ProcessorFiles:
    """Holds the contents of a model directory's files for the processors."""

    directory: Path
    config: JsonObject
    image_processor: JsonObject
    image_processor_path: Path
    video_processor: JsonObject  # empty if the checkpoint has no settings for videos
    video_processor_path: Path
    feature_extractor: JsonObject  # the settings for sounds; empty if the checkpoint has none
    feature_extractor_path: Path
    processor: JsonObject
    special_tokens: Mapping[str, str]

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type"))

    def token_text(self, token: str, default: str) -> str:
        """Returns a special token's text from the tokenizer, else from `processor_config.json`."""
        declared = self.special_tokens.get(token) or self.processor.get(token)
        return declared if isinstance(declared, str) else default


Record = TypeVar("Record", bound=msgspec.Struct)
Settings = TypeVar("Settings", bound=PixelSettings)


def read_processor_files(directory: Path) -> ProcessorFiles:
    """Reads the processor files. `processor_config.json` takes precedence, as in transformers."""
    processor = read_json_object(directory / "processor_config.json")
    image_processor, path = _inner_or_own(
        directory, processor, "image_processor", "preprocessor_config.json"
    )
    video_processor, video_processor_path = _inner_or_own(
        directory, processor, "video_processor", "video_preprocessor_config.json"
    )
    feature_extractor, feature_extractor_path = _inner_or_own(
        directory, processor, "feature_extractor", "preprocessor_config.json"
    )
    return ProcessorFiles(
        directory=directory,
        config=read_config_json(directory),
        image_processor=image_processor,
        image_processor_path=path,
        video_processor=video_processor,
        video_processor_path=video_processor_path,
        feature_extractor=feature_extractor,
        feature_extractor_path=feature_extractor_path,
        processor=processor,
        special_tokens=read_special_tokens(directory),
    )


def _inner_or_own(
    directory: Path, processor: JsonObject, key: str, name: str
) -> tuple[JsonObject, Path]:
    """Returns the settings under the key of `processor_config.json`, else from the file `name`."""
    inner = processor.get(key)
    if isinstance(inner, dict):
        return inner, directory / "processor_config.json"
    return read_json_object(directory / name), directory / name


def read_image_settings(files: ProcessorFiles, by_type: Mapping[str, type[Settings]]) -> Settings:
    """Reads the settings as the record of their `image_processor_type`; without a type, as the
    first record.
    """
    declared = files.image_processor.get("image_processor_type") or next(iter(by_type))
    name = str(declared)
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    source = files.image_processor_path
    if name not in by_type:
        supported = ", ".join(by_type)
        raise ModelLoadError(
            f"{source}: image_processor_type must be one of {supported}, found {brief(declared)}"
        )
    return _check(read_record(files.image_processor, by_type[name], source), source)


def read_video_settings(
    files: ProcessorFiles,
    form: type[Settings],
    types: Sequence[str],
    shared_keys: Sequence[str],
) -> Settings:
    """Reads the settings as `form`, if their `video_processor_type` is one of `types`.

    Without settings for videos, the `shared_keys` of the image processor are read.
    """
    values, source = files.video_processor, files.video_processor_path
    if not values:
        source = files.image_processor_path
        pictures = files.image_processor
        values = {key: value for key, value in pictures.items() if key in shared_keys}
    declared = values.get("video_processor_type")
    if declared is not None and declared not in types:
        raise ModelLoadError(
            f"{source}: video_processor_type must be one of {', '.join(types)}, "
            f"found {brief(declared)}"
        )
    return _check(read_record(values, form, source), source)


def _check(settings: Settings, source: Path) -> Settings:
    numbers = (settings.rescale_factor, *settings.image_mean, *settings.image_std)
    if not all(map(math.isfinite, numbers)) or 0 in settings.image_std:
        names = {each.name: each.encode_name for each in msgspec.structs.fields(settings)}
        mean, std = names["image_mean"], names["image_std"]
        raise ModelLoadError(
            f"{source}: rescale_factor, {mean} and {std} must be numbers, and {std} without 0"
        )
    if not settings.do_resize:
        raise ModelLoadError(f"{source}: do_resize must be true, found false")
    return settings


def compare_with_config(files: ProcessorFiles, **values: tuple[object, object]) -> None:
    """Raises ModelLoadError for a setting of the image processor that differs from config.json.

    `values` are the setting and the value in config.json by the setting's key. A list of two equal
    sides in config.json is one side in the settings.
    """
    for key, (found, expected) in values.items():
        if expected not in (found, [found, found]):
            raise ModelLoadError(
                f"{files.image_processor_path}: {key} must be {expected}, the value in "
                f"config.json, found {found}"
            )


def read_record(values: JsonObject, form: type[Record], source: Path) -> Record:
    try:
        return msgspec.convert(_without_nulls(values), form)
    except (msgspec.ValidationError, OverflowError) as error:
        raise ModelLoadError(f"{source}: {error}") from error


def _without_nulls(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
