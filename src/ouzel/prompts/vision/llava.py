"""LLaVA 1.5 and related models read one tile of a fixed size. With Pixtral's tower it is Pixtral's
layout.
"""

from dataclasses import dataclass

import msgspec
from PIL import Image

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision import pixtral
from ouzel.prompts.vision.base import (
    Detail,
    ImageLayout,
    ImageProcessor,
    Normalisation,
    Tiles,
    check_aspect_ratio,
)
from ouzel.prompts.vision.resizing import (
    center_crop,
    check_square_side,
    one_tile,
    padded_to_square,
    resized,
)
from ouzel.prompts.vision.selected_features import num_added_tokens, patch_grid
from ouzel.prompts.vision.settings import (
    HALVES,
    Channels,
    HeightAndWidth,
    PixelSettings,
    ProcessorFiles,
    Side,
    read_image_settings,
)


class _Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    shortest_edge: Side | None = None
    height: Side | None = None
    width: Side | None = None


class _ClipSettings(PixelSettings, frozen=True, kw_only=True):
    size: Side | _Size = _Size(shortest_edge=224)
    do_center_crop: bool = True
    crop_size: Side | HeightAndWidth = HeightAndWidth(224, 224)


class _LlavaSettings(_ClipSettings, frozen=True, kw_only=True):
    do_pad: bool = False  # pads to a square with the mean colour


class _SiglipSettings(_ClipSettings, frozen=True, kw_only=True):
    image_mean: Channels = HALVES
    image_std: Channels = HALVES
    size: Side | _Size = _Size(height=224, width=224)
    do_center_crop: bool = False


@dataclass(frozen=True, slots=True)
class LlavaImageProcessor:
    """Makes one tile of each picture; the detail makes no difference."""

    feature_token: str
    normalisation: Normalisation
    resample: int
    num_tokens: int
    tile_size: tuple[int, int]  # (width, height)
    shortest_edge: int | None  # None: the picture is resized to the tile without keeping its shape
    background: tuple[int, int, int] | None  # None: the picture is not padded to a square

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        check_aspect_ratio(width, height)
        if self.background is not None:
            check_square_side(width, height)
        return ImageLayout(self.feature_token * self.num_tokens, self.num_tokens)

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        self.layout(*image.size, detail)
        if self.background is not None:
            image = padded_to_square(image, self.background)
        image = resized(image, self._new_size(*image.size), self.resample)
        return [one_tile(center_crop(image, self.tile_size))]

    def _new_size(self, width: int, height: int) -> tuple[int, int]:
        if (edge := self.shortest_edge) is None:
            return self.tile_size
        if width <= height:
            return edge, int(edge * height / width)
        return int(edge * width / height), edge


def load(files: ProcessorFiles) -> ImageProcessor:
    if pixtral.is_tower(files):
        return pixtral.load(files)
    by_type = {
        "CLIPImageProcessor": _ClipSettings,
        "LlavaImageProcessor": _LlavaSettings,
        "SiglipImageProcessor": _SiglipSettings,
    }
    settings = read_image_settings(files, by_type)
    shortest_edge, (width, height) = _sizes(settings, files)
    rows, columns = patch_grid(files, (width, height))
    pads = isinstance(settings, _LlavaSettings) and settings.do_pad
    red, green, blue = (int(mean * 255) for mean in settings.image_mean)
    return LlavaImageProcessor(
        feature_token=files.token_text("image_token", "<image>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        num_tokens=rows * columns + num_added_tokens(files),
        tile_size=(width, height),
        shortest_edge=shortest_edge,
        background=(red, green, blue) if pads else None,
    )


def _sizes(settings: _ClipSettings, files: ProcessorFiles) -> tuple[int | None, tuple[int, int]]:
    """Returns the shortest edge after resizing (None if the size is fixed) and the tile's (width,
    height).
    """
    size = _Size(shortest_edge=settings.size) if isinstance(settings.size, int) else settings.size
    crop = settings.crop_size
    if isinstance(crop, int):
        crop = HeightAndWidth(crop, crop)
    source = files.image_processor_path
    if size.height is not None and size.width is not None and size.shortest_edge is None:
        if settings.do_center_crop and (crop.height, crop.width) != (size.height, size.width):
            raise ModelLoadError(
                f"{source}: crop_size must equal the fixed size, {size.height}x{size.width}"
            )
        return None, (size.width, size.height)
    if size.shortest_edge is None or not settings.do_center_crop:
        raise ModelLoadError(
            f"{source}: size must have a shortest_edge, with do_center_crop, or height and width"
        )
    if max(crop.height, crop.width) > size.shortest_edge:
        raise ModelLoadError(
            f"{source}: crop_size must be <= the shortest_edge {size.shortest_edge}, "
            f"found {crop.height}x{crop.width}"
        )
    return size.shortest_edge, (crop.width, crop.height)
