"""PaddleOCR-VL reads one tile like Qwen2-VL; sides shorter than a token are stretched first."""

from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.qwen2_vl import (
    MergeSize,
    PixelRange,
    Qwen2VlImageProcessor,
    check_patches,
)
from ouzel.prompts.vision.settings import (
    NumPixels,
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    read_image_settings,
)


class _Settings(PixelSettings, frozen=True, kw_only=True):
    size: PixelRange = PixelRange()
    min_pixels: NumPixels | None = None  # takes precedence over `size`
    max_pixels: NumPixels | None = None
    patch_size: PatchSide = 14
    merge_size: MergeSize = 2


def load(files: ProcessorFiles) -> ImageProcessor:
    # The first checkpoints have code of their own, with the name of another image processor.
    settings = read_image_settings(
        files, {"PaddleOCRVLImageProcessor": _Settings, "SiglipImageProcessor": _Settings}
    )
    check_patches(files, files.image_processor_path, settings.patch_size, settings.merge_size)
    size = settings.size
    return Qwen2VlImageProcessor(
        feature_token=files.special_tokens.get("image_token", "<|IMAGE_PLACEHOLDER|>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        token_side=settings.patch_size * settings.merge_size,
        min_pixels=settings.min_pixels or size.shortest_edge or 384 * 384,
        max_pixels=settings.max_pixels or size.longest_edge or 1536 * 1536,
        enlarge=_enlarge,
    )


def _enlarge(width: int, height: int, side: int) -> tuple[int, int]:
    if height < side:
        width, height = round(width * side / height), side
    if width < side:
        width, height = side, round(height * side / width)
    return width, height
