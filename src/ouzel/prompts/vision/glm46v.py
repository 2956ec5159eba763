"""GLM-OCR reads one tile like Qwen2-VL; its range of pixels counts each picture as two frames."""

from dataclasses import dataclass

from PIL import Image

from ouzel.prompts.vision.base import (
    LOW_DETAIL_SIDE,
    Detail,
    ImageLayout,
    ImageProcessor,
    Normalisation,
    Tiles,
    check_aspect_ratio,
)
from ouzel.prompts.vision.qwen2_vl import MergeSize, PixelRange, check_patches, fit_size
from ouzel.prompts.vision.resizing import one_tile, resized
from ouzel.prompts.vision.settings import (
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    read_image_settings,
)

_NUM_FRAMES = 2


class _Settings(PixelSettings, frozen=True, kw_only=True):
    size: PixelRange = PixelRange()
    patch_size: PatchSide = 14
    merge_size: MergeSize = 2


@dataclass(frozen=True, slots=True)
class Glm46vImageProcessor:
    feature_token: str
    normalisation: Normalisation
    resample: int
    token_side: int  # pixels; a token covers merged patches
    min_pixels: int  # of two frames
    max_pixels: int

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        new_width, new_height = self._new_size(width, height, detail)
        rows, columns = new_height // self.token_side, new_width // self.token_side
        return ImageLayout(
            self.feature_token * (rows * columns), rows * columns, (1, rows, columns)
        )

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        return [one_tile(resized(image, self._new_size(*image.size, detail), self.resample))]

    def _new_size(self, width: int, height: int, detail: Detail) -> tuple[int, int]:
        """Returns (width, height) within the range of pixels, both multiples of a token's side."""
        check_aspect_ratio(width, height)
        side, max_pixels = self.token_side, self.max_pixels
        if detail == "low":
            max_pixels = min(max_pixels, _NUM_FRAMES * LOW_DETAIL_SIDE**2)
        if width < side or height < side:
            scale = max(side / height, side / width)
            width, height = int(width * scale), int(height * scale)
        pixel_range = (min(self.min_pixels, max_pixels), max_pixels)
        return fit_size(width, height, side, pixel_range, _NUM_FRAMES)


def load(files: ProcessorFiles) -> ImageProcessor:
    settings = read_image_settings(files, {"Glm46VImageProcessor": _Settings})
    check_patches(files, files.image_processor_path, settings.patch_size, settings.merge_size)
    size = settings.size
    return Glm46vImageProcessor(
        feature_token=files.special_tokens.get("image_token", "<|image|>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        token_side=settings.patch_size * settings.merge_size,
        min_pixels=size.shortest_edge or 112 * 112,
        max_pixels=size.longest_edge or 28 * 28 * 15_000,
    )
