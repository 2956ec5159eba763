"""GLM-OCR reads one tile like Qwen2-VL; its range of pixels counts a picture as two frames."""

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.qwen2_vl import (
    MergeSize,
    PixelRange,
    Qwen2VlImageProcessor,
    check_patches,
)
from ouzel.prompts.vision.settings import (
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    read_image_settings,
)

_NUM_FRAMES = 2  # frames that a picture counts as


class _Settings(PixelSettings, frozen=True, kw_only=True):
    size: PixelRange = PixelRange()
    patch_size: PatchSide = 14
    merge_size: MergeSize = 2
    temporal_patch_size: int = _NUM_FRAMES


def load(files: ProcessorFiles) -> ImageProcessor:
    settings = read_image_settings(files, {"Glm46VImageProcessor": _Settings})
    check_patches(files, files.image_processor_path, settings.patch_size, settings.merge_size)
    if settings.temporal_patch_size != _NUM_FRAMES:
        raise ModelLoadError(
            f"{files.image_processor_path}: temporal_patch_size must be {_NUM_FRAMES}, found "
            f"{settings.temporal_patch_size}"
        )
    size = settings.size
    return Qwen2VlImageProcessor(
        feature_token=files.special_tokens.get("image_token", "<|image|>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        token_side=settings.patch_size * settings.merge_size,
        min_pixels=size.shortest_edge or 112 * 112,
        max_pixels=size.longest_edge or 28 * 28 * 15_000,
        num_frames=_NUM_FRAMES,
        enlarge=_enlarge,
    )


def _enlarge(width: int, height: int, side: int) -> tuple[int, int]:
    if width >= side and height >= side:
        return width, height
    scale = max(side / height, side / width)
    return int(width * scale), int(height * scale)
