"""Counts the selected features in LLaVA's families: CLIP's class token may be left out."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.settings import PatchSide, ProcessorFiles, read_record

_Strategy = Literal["default", "full"]


class _VisionConfig(msgspec.Struct, frozen=True):
    model_type: str = "clip_vision_model"
    patch_size: PatchSide | None = None


class _Config(msgspec.Struct, frozen=True):
    vision_config: _VisionConfig
    vision_feature_select_strategy: _Strategy | None = None


class _Processor(msgspec.Struct, frozen=True):
    patch_size: PatchSide | None = None
    vision_feature_select_strategy: _Strategy | None = None
    num_additional_image_tokens: Annotated[int, Meta(ge=0, le=16)] | None = None


def patch_grid(files: ProcessorFiles, tile_size: tuple[int, int]) -> tuple[int, int]:
    """Returns the rows and columns of patches in a tile of (width, height).

    The patch size is in `processor_config.json`; older checkpoints have it only with the vision
    tower.
    """
    config, processor = _read(files)
    patch_size = processor.patch_size or config.vision_config.patch_size
    if patch_size is None:
        raise ModelLoadError(
            f"{files.directory / 'config.json'}: patch_size is missing in vision_config"
        )
    if min(tile_size) < patch_size:
        width, height = tile_size
        raise ModelLoadError(
            f"{files.directory}: patch_size must be <= a tile's {height}x{width}, "
            f"found {patch_size}"
        )
    return tile_size[1] // patch_size, tile_size[0] // patch_size


def num_added_tokens(files: ProcessorFiles, default_strategy: _Strategy = "default") -> int:
    """Returns how many more tokens than patches a tile has: 0 with CLIP's class token left out.

    If `processor_config.json` does not say whether there is a class token, the kind of tower
    decides.
    """
    config, processor = _read(files)
    num_added = processor.num_additional_image_tokens
    if num_added is None:
        num_added = int(config.vision_config.model_type == "clip_vision_model")
    strategy = (
        processor.vision_feature_select_strategy
        or config.vision_feature_select_strategy
        or default_strategy
    )
    return num_added - int(strategy == "default")


def _read(files: ProcessorFiles) -> tuple[_Config, _Processor]:
    config = read_record(files.config, _Config, files.directory / "config.json")
    return config, read_record(
        files.processor, _Processor, files.directory / "processor_config.json"
    )
