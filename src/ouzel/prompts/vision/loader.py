"""A family of vision models is a file here, found by the `model_type` of the checkpoint."""

from collections.abc import Callable
from pathlib import Path

from ouzel.prompts.vision import qwen2_vl
from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.settings import ProcessorFiles, read_processor_files

_FAMILIES: dict[str, Callable[[ProcessorFiles], ImageProcessor]] = {
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), qwen2_vl.load),
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"), qwen2_vl.load),
}


def load_image_processor(directory: Path) -> ImageProcessor | None:
    """Returns None for a checkpoint without a vision tower, without an image processor, or of no family here."""
    files = read_processor_files(directory)
    load = _FAMILIES.get(files.model_type)
    if load is None or not files.image_processor or not isinstance(files.config.get("vision_config"), dict):
        return None
    return load(files)
