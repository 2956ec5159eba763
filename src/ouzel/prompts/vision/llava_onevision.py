"""LLaVA-OneVision reads the whole picture, then its tiles in the best resolution.

If the tiles have too many features, the features are scaled down.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
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
from ouzel.prompts.vision.resizing import check_square_side, one_tile, padded_to_square, resized
from ouzel.prompts.vision.settings import (
    HeightAndWidth,
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    Side,
    read_image_settings,
    read_record,
)

_MULTIPLES = [384 * count for count in range(1, 7)]
_MAX_SURPLUS = 1.1  # a smaller surplus of a side is not scaled down
_Strategy = Literal["default", "full"]
_AspectRatio = Annotated[str, Meta(pattern=r"^anyres_max_[1-9]\d{0,3}$")]
_NumTokens = Annotated[int, Meta(ge=1, le=2**16)]


class _Settings(PixelSettings, frozen=True, kw_only=True):
    size: Side | HeightAndWidth = HeightAndWidth(384, 384)
    image_grid_pinpoints: Resolutions = msgspec.field(
        default_factory=lambda: [(height, width) for height in _MULTIPLES for width in _MULTIPLES]
    )


class _VisionConfig(msgspec.Struct, frozen=True):
    image_size: Side = 384
    patch_size: PatchSide = 14


class _Config(msgspec.Struct, frozen=True):
    vision_config: _VisionConfig
    vision_feature_select_strategy: _Strategy = "full"
    vision_aspect_ratio: _AspectRatio = "anyres_max_9"


class _Processor(msgspec.Struct, frozen=True):
    num_image_tokens: _NumTokens | None = None
    vision_feature_select_strategy: _Strategy | None = None
    vision_aspect_ratio: _AspectRatio | None = None


@dataclass(frozen=True, slots=True)
class LlavaOnevisionImageProcessor:
    """Low detail is one tile, padded to a square. As in the reference, each of several pictures has
    low detail.
    """

    feature_token: str
    normalisation: Normalisation
    resample: int
    any_res: AnyRes
    num_base_tokens: int  # tokens of the first tile
    max_num_tiles: int  # the features of the other tiles are scaled down to this many tiles
    background: tuple[int, int, int]

    @property
    def placeholder(self) -> str:
        return self.feature_token

    @property
    def detail_of_several(self) -> Detail:
        return "low"

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        check_aspect_ratio(width, height)
        if detail == "low":
            check_square_side(width, height)
            num_tokens = self.num_base_tokens + 1
        else:
            rows, columns = self.feature_grid(width, height)
            num_tokens = self.num_base_tokens + rows * (columns + 1)
        return ImageLayout(self.feature_token * num_tokens, num_tokens)

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        self.layout(*image.size, detail)
        if detail == "low":
            square = padded_to_square(image, self.background)
            return [one_tile(resized(square, (self.any_res.tile_side,) * 2, self.resample))]
        return [self.any_res.tiles(image, self.resample)]

    def feature_grid(self, width: int, height: int) -> tuple[int, int]:
        """Returns the rows and columns of features behind the first tile's, scaled down if too
        many.
        """
        rows, columns = self.any_res.feature_grid(width, height)
        max_features = self.max_num_tiles * self.any_res.patches_per_side**2
        surplus = math.sqrt(rows * columns / max_features)
        if surplus > _MAX_SURPLUS:
            return int(rows // surplus), int(columns // surplus)
        return rows, columns


def load(files: ProcessorFiles) -> ImageProcessor:
    settings = read_image_settings(files, {"LlavaOnevisionImageProcessor": _Settings})
    config = read_record(files.config, _Config, files.directory / "config.json")
    processor = read_record(files.processor, _Processor, files.directory / "processor_config.json")
    size = settings.size
    side = size if isinstance(size, int) else size.height
    if not isinstance(size, int) and size.width != side:
        raise ModelLoadError(
            f"{files.image_processor_path}: size must be a square, found {side}x{size.width}"
        )
    check_resolutions(settings.image_grid_pinpoints, side, files)
    vision = config.vision_config
    num_base_tokens = processor.num_image_tokens or (vision.image_size // vision.patch_size) ** 2
    strategy = processor.vision_feature_select_strategy or config.vision_feature_select_strategy
    aspect_ratio = processor.vision_aspect_ratio or config.vision_aspect_ratio
    red, green, blue = (int(mean * 255) for mean in settings.image_mean)
    return LlavaOnevisionImageProcessor(
        feature_token=files.token_text("image_token", "<image>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        any_res=AnyRes(settings.image_grid_pinpoints, side, math.isqrt(num_base_tokens)),
        num_base_tokens=num_base_tokens - int(strategy == "default"),
        max_num_tiles=int(aspect_ratio.removeprefix("anyres_max_")),
        background=(red, green, blue),
    )
