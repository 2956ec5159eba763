"""A family of vision models is a file here, found by the `model_type` of the checkpoint and imported only then.

Each has a function `load(files)`, which makes the image processor of what the checkpoint's files say.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.settings import read_processor_files
from ouzel.prompts.vision.video import VideoProcessor

_FAMILIES = {
    "gemma3": "gemma3",
    "gemma4": "gemma4",
    "idefics3": "idefics3",
    "internvl": "internvl",
    "llava": "llava",
    "llava_next": "llava_next",
    "llava_onevision": "llava_onevision",
    "mistral3": "pixtral",
    "qwen2_vl": "qwen2_vl",
    "qwen2_5_vl": "qwen2_vl",
    "qwen3_vl": "qwen2_vl",
    "qwen3_vl_moe": "qwen2_vl",
    "qwen3_5": "qwen2_vl",
    "qwen3_5_moe": "qwen2_vl",
    "smolvlm": "idefics3",
}
_OF_VIDEOS = {
    "internvl": "internvl_video",
    "qwen2_vl": "qwen_video",
    "qwen2_5_vl": "qwen_video",
    "qwen3_vl": "qwen_video",
    "qwen3_vl_moe": "qwen_video",
    "qwen3_5": "qwen_video",
    "qwen3_5_moe": "qwen_video",
}


def load_image_processor(directory: Path) -> ImageProcessor | None:
    """Returns None for a checkpoint without a vision tower, without an image processor, or of no family here."""
    processor: ImageProcessor | None = _loaded(directory, _FAMILIES)
    return processor


def load_video_processor(directory: Path) -> VideoProcessor | None:
    """Returns None for a checkpoint of a family whose videos are not read here, or that has no image processor."""
    processor: VideoProcessor | None = _loaded(directory, _OF_VIDEOS)
    return processor


def _loaded(
    directory: Path, modules: Mapping[str, str]
) -> Any:  # Any: what the module makes is for the caller to say
    files = read_processor_files(directory)
    module = modules.get(files.model_type)
    if (
        module is None
        or not files.image_processor
        or not isinstance(files.config.get("vision_config"), dict)
    ):
        return None
    return import_module(f"ouzel.prompts.vision.{module}").load(files)
