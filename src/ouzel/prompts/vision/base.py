"""An image processor says what stands in the prompt for a picture, and prepares its pixels as the model was trained.

What the layout says follows from the picture's size alone, so a request is counted and refused before any pixel is
decoded. Pixels stay bytes until the engine normalises them: so they are a quarter as large on their way.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

Detail = Literal["auto", "low", "high"]  # auto and high are the checkpoint's own settings
Tiles = NDArray[np.uint8]  # [tiles, height, width, 3]

LOW_DETAIL_SIDE = 512
_MAX_ASPECT_RATIO = 200  # some families scale the short side up: a thin line would take gigabytes


@dataclass(frozen=True, slots=True)
class Normalisation:
    """A pixel's float value is (value * rescale - mean) / std, in float32, by channel."""

    rescale: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """It is known from the picture's size alone."""

    text: str  # what stands in the prompt for it, instead of the template's placeholder
    num_tokens: int  # how often `feature_token` occurs in the text: once per row of features
    # (time, height, width) of its tokens, where M-RoPE counts by it
    position_grid: tuple[int, int, int] | None = None


class ImageProcessor(Protocol):
    @property
    def placeholder(self) -> str:
        """It stands for one picture in the rendered chat template."""
        ...

    @property
    def feature_token(self) -> str: ...

    @property
    def normalisation(self) -> Normalisation: ...

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        """Raises ValueError for a picture that the model cannot take; the message says why."""
        ...

    def tiles(self, image: "Image", detail: Detail) -> Tiles:
        """Resizes, crops and pads an RGB picture as the reference does, without rescaling or normalising it."""
        ...


@dataclass(frozen=True, slots=True)
class TilesOf:
    """Makes the tiles of a picture, in each detail. It can be pickled, as image processors can."""

    processor: ImageProcessor
    details: tuple[Detail, ...]

    def __call__(self, image: "Image") -> list[Tiles]:
        return [self.processor.tiles(image, detail) for detail in self.details]


@runtime_checkable
class HasDetailOfSeveral(Protocol):
    """An image processor is this, too, where the model was trained with less of each of several pictures."""

    @property
    def detail_of_several(self) -> Detail: ...


def chosen_detail(processor: ImageProcessor, detail: Detail, *, are_several: bool) -> Detail:
    """Returns what a picture is prepared in, which may be the only one of its chat, or one of several."""
    if detail == "auto" and are_several and isinstance(processor, HasDetailOfSeveral):
        return processor.detail_of_several
    return detail


def check_aspect_ratio(width: int, height: int) -> None:
    if max(width, height) > _MAX_ASPECT_RATIO * min(width, height):
        raise ValueError(
            f"the aspect ratio must be <= {_MAX_ASPECT_RATIO}, given {width}x{height} pixels"
        )
