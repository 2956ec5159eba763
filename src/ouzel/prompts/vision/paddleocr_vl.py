"""PaddleOCR-VL reads one tile like Qwen2-VL; sides shorter than a token are stretched first."""

from ouzel.prompts.vision import qwen2_vl
from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.settings import ProcessorFiles


def load(files: ProcessorFiles) -> ImageProcessor:
    # The first checkpoints have code of their own, with the name of another image processor.
    names = ("PaddleOCRVLImageProcessor", "SiglipImageProcessor")
    pixels = (384 * 384, 1536 * 1536)
    return qwen2_vl.load_named(files, names, "<|IMAGE_PLACEHOLDER|>", pixels, _enlarge)


def _enlarge(width: int, height: int, side: int) -> tuple[int, int]:
    if height < side:
        width, height = round(width * side / height), side
    if width < side:
        width, height = side, round(height * side / width)
    return width, height
