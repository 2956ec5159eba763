"""Loads the image or video processor of a checkpoint.

Each family is a module here, chosen by the checkpoint's `model_type` and imported only then. Its
function `load(files)` makes the processor from the checkpoint's files.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.settings import read_processor_files
from ouzel.prompts.vision.video import VideoProcessor

# model_type -> module
_FAMILIES = {
    "gemma3": "gemma3",
    "gemma4": "gemma4",
    "glm_ocr": "glm46v",
    "granite4_vision": "granite4_vision",
    "idefics3": "idefics3",
    "internvl": "internvl",
    "lfm2_vl": "lfm2_vl",
    "llava": "llava",
    "llava_next": "llava_next",
    "llava_onevision": "llava_onevision",
    "minicpmv": "minicpmv",
    "minicpmv4_6": "minicpmv4_6",
    "mistral3": "pixtral",
    "paddleocr_vl": "paddleocr_vl",
    "paligemma": "paligemma",
    "qwen2_vl": "qwen2_vl",
    "qwen2_5_vl": "qwen2_vl",
    "qwen3_vl": "qwen2_vl",
    "qwen3_vl_moe": "qwen2_vl",
    "qwen3_5": "qwen2_vl",
    "qwen3_5_moe": "qwen2_vl",
    "qwen3_omni_moe": "qwen2_vl",
    "smolvlm": "idefics3",
}
_VIDEO_FAMILIES = {
    "internvl": "internvl_video",
    "qwen2_vl": "qwen_video",
    "qwen2_5_vl": "qwen_video",
    "qwen3_vl": "qwen_video",
    "qwen3_vl_moe": "qwen_video",
    "qwen3_5": "qwen_video",
    "qwen3_5_moe": "qwen_video",
}


def load_image_processor(directory: Path) -> ImageProcessor | None:
    """Returns the image processor of a checkpoint.

    Returns None if it has no vision tower, no image processor or an unknown family.
    """
    processor: ImageProcessor | None = _load(directory, _FAMILIES)
    return processor


def load_video_processor(directory: Path) -> VideoProcessor | None:
    """Returns the video processor of a checkpoint.

    Returns None if it has no image processor, or a family without support for videos.
    """
    processor: VideoProcessor | None = _load(directory, _VIDEO_FAMILIES)
    return processor


# Any: the caller knows the type of the result.
def _load(directory: Path, modules: Mapping[str, str]) -> Any:
    files = read_processor_files(directory)
    module = modules.get(files.model_type)
    has_tower = isinstance(files.config.get("vision_config"), dict)
    if module is None or not files.image_processor or not has_tower:
        return None
    return import_module(f"ouzel.prompts.vision.{module}").load(files)
