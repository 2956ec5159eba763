"""LLaVA-NeXT reads the whole picture, then tiles of the best resolution."""

from dataclasses import dataclass
from fractions import Fraction

import msgspec
from PIL import Image

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.anyres import AnyRes, Resolutions, check_resolutions
from ouzel.prompts.vision.base import (
    Detail,
    ImageLayout,
    ImageProcessor,
    Normalisation,
    Tiles,
    check_aspect_ratio,
)
from ouzel.prompts.vision.resizing import one_tile, resized
from ouzel.prompts.vision.selected_features import num_added_tokens, patch_grid
from ouzel.prompts.vision.settings import (
    HeightAndWidth,
    PixelSettings,
    ProcessorFiles,
    Side,
    read_image_settings,
)

_WHOLE = Fraction(1)


class _Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    shortest_edge: Side | None = None
    height: Side | None = None
    width: Side | None = None


class _Settings(PixelSettings, frozen=True, kw_only=True):
    size: Side | _Size = _Size(shortest_edge=224)
    crop_size: Side | HeightAndWidth = HeightAndWidth(224, 224)
    image_grid_pinpoints: Resolutions = msgspec.field(
        default_factory=lambda: [(336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008)]
    )


@dataclass(frozen=True, slots=True)
class LlavaNextImageProcessor:
    """With low detail there is only the whole picture; the model adds the mark of a row behind
    it.
    """

    feature_token: str
    normalisation: Normalisation
    resample: int
    any_res: AnyRes
    num_base_tokens: int  # tokens of the first tile

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        check_aspect_ratio(width, height)
        num_tokens = self.num_base_tokens + 1
        if detail != "low":
            rows, columns = self.any_res.feature_grid(width, height)
            num_tokens = self.num_base_tokens + rows * (columns + 1)
        return ImageLayout(self.feature_token * num_tokens, num_tokens)

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        check_aspect_ratio(*image.size)
        if detail == "low":
            return [one_tile(resized(image, (self.any_res.tile_side,) * 2, self.resample))]
        return [self.any_res.tiles(image, self.resample)]


def load(files: ProcessorFiles) -> ImageProcessor:
    return make_processor(files)


def make_processor(files: ProcessorFiles, rate: Fraction = _WHOLE) -> LlavaNextImageProcessor:
    """Makes the processor; `rate` is the number of features for each patch, along one side."""
    settings = read_image_settings(files, {"LlavaNextImageProcessor": _Settings})
    side = _tile_side(settings, files)
    check_resolutions(settings.image_grid_pinpoints, side, files)
    patches_per_side, _ = patch_grid(files, (side, side))
    patches_per_side = int(patches_per_side * rate)
    return LlavaNextImageProcessor(
        feature_token=files.token_text("image_token", "<image>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        any_res=AnyRes(settings.image_grid_pinpoints, side, patches_per_side),
        num_base_tokens=patches_per_side**2 + num_added_tokens(files),
    )


def _tile_side(settings: _Settings, files: ProcessorFiles) -> int:
    """Returns the side of a tile; the picture is resized and cropped to it."""
    size, crop = settings.size, settings.crop_size
    sides: set[int | None] = set()
    sides |= {size} if isinstance(size, int) else {size.shortest_edge, size.height, size.width}
    sides |= {crop} if isinstance(crop, int) else {crop.height, crop.width}
    sides -= {None}
    if len(sides) != 1:
        raise ModelLoadError(f"{files.image_processor_path}: size and crop_size must be one square")
    return next(side for side in sides if side is not None)
