"""Defines the interface of image processors: the text in the prompt for a picture, and the pixels
for the vision encoder.

The layout depends only on the picture's size, so a request is counted, and perhaps refused, before
any pixel is decoded. Pixels stay bytes until the engine normalises them, which takes a quarter of
the memory.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

Detail = Literal["auto", "low", "high"]  # auto and high use the checkpoint's own settings
Tiles = NDArray[np.uint8]  # [tiles, height, width, 3]

LOW_DETAIL_SIDE = 512
# Some families scale the short side up: a thin line would take gigabytes.
_MAX_ASPECT_RATIO = 200


@dataclass(frozen=True, slots=True)
class Normalisation:
    """The float value of a channel is (value * rescale - mean) / std, in float32."""

    rescale: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """Describes the place of a picture in a prompt, known from its size alone."""

    text: str  # replaces the template's placeholder in the prompt
    num_tokens: int  # occurrences of `feature_token` in the text: one for each row of features
    # (time, height, width) of the tokens, for models with M-RoPE
    position_grid: tuple[int, int, int] | None = None
    # number of tokens of each piece, if the encoder takes the picture in several; empty: in one
    piece_tokens: tuple[int, ...] = ()


class ImageProcessor(Protocol):
    """Prepares pictures as one model was trained. It can be pickled."""

    @property
    def placeholder(self) -> str:
        """Returns the text for one picture in the rendered chat."""
        ...

    @property
    def feature_token(self) -> str: ...

    @property
    def normalisation(self) -> Normalisation: ...

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        """Returns the layout of a picture of this size in pixels.

        Raises ValueError with the reason for a picture that the model cannot take.
        """
        ...

    def pieces(self, image: "Image", detail: Detail) -> list[Tiles]:
        """Resizes, crops and pads an RGB picture like the reference, without rescaling or
        normalising.

        The tiles of a piece have one size. Most families have one piece; `piece_tokens` of the
        layout tells how many there are.
        """
        ...


@dataclass(frozen=True, slots=True)
class PieceMaker:
    """Makes the pieces of a picture in each detail, one detail after the other.

    It is a Preparation. It can be pickled.
    """

    processor: ImageProcessor
    details: tuple[Detail, ...]

    def __call__(self, image: "Image") -> list[Tiles]:
        return [piece for detail in self.details for piece in self.processor.pieces(image, detail)]


@runtime_checkable
class HasDetailOfSeveral(Protocol):
    """An image processor whose model was trained with less detail if there are several pictures."""

    @property
    def detail_of_several(self) -> Detail: ...


@runtime_checkable
class WritesPicturesAsLines(Protocol):
    """An image processor of a model whose chat template may read texts only."""

    @property
    def writes_pictures_as_lines(self) -> bool:
        """Tells whether each picture is a line of its message's text, as the model was trained."""
        ...


@runtime_checkable
class NumbersPictures(Protocol):
    """An image processor whose model was trained with the number of each picture before it."""

    def number_text(self, number: int) -> str:
        """Returns the text before the picture with this number; the first number is 0."""
        ...


def choose_detail(processor: ImageProcessor, detail: Detail, *, are_several: bool) -> Detail:
    """Returns the detail in which to prepare a picture. `are_several` tells whether the chat has
    several.
    """
    if detail == "auto" and are_several and isinstance(processor, HasDetailOfSeveral):
        return processor.detail_of_several
    return detail


def check_aspect_ratio(width: int, height: int) -> None:
    if max(width, height) > _MAX_ASPECT_RATIO * min(width, height):
        raise ValueError(
            f"the aspect ratio must be <= {_MAX_ASPECT_RATIO}, given {width}x{height} pixels"
        )
