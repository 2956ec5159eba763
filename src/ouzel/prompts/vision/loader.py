"""A family of vision models is a file here, found by the `model_type` of the checkpoint."""

from collections.abc import Callable
from pathlib import Path

from ouzel.prompts.vision import (
    gemma3,
    gemma4,
    idefics3,
    internvl,
    llava,
    llava_next,
    llava_onevision,
    pixtral,
    qwen2_vl,
)
from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.settings import ProcessorFiles, read_processor_files

_FAMILIES: dict[str, Callable[[ProcessorFiles], ImageProcessor]] = {
    "gemma3": gemma3.load,
    "gemma4": gemma4.load,
    "idefics3": idefics3.load,
    "internvl": internvl.load,
    "llava": llava.load,
    "llava_next": llava_next.load,
    "llava_onevision": llava_onevision.load,
    "mistral3": pixtral.load,
    "qwen2_vl": qwen2_vl.load,
    "qwen2_5_vl": qwen2_vl.load,
    "qwen3_vl": qwen2_vl.load,
    "qwen3_vl_moe": qwen2_vl.load,
    "qwen3_5": qwen2_vl.load,
    "qwen3_5_moe": qwen2_vl.load,
    "smolvlm": idefics3.load,
}


def load_image_processor(directory: Path) -> ImageProcessor | None:
    """Returns None for a checkpoint without a vision tower, without an image processor, or of no family here."""
    files = read_processor_files(directory)
    load = _FAMILIES.get(files.model_type)
    if load is None or not files.image_processor or not isinstance(files.config.get("vision_config"), dict):
        return None
    return load(files)
