"""What stands in a prompt for a picture, a video or a page of a PDF, and what the vision encoder takes of it."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from ouzel.prompts.vision.base import Normalisation, Tiles

MAX_KEPT_BYTES = (
    64 * 2**20
)  # of prepared pixels: clients send a chat's pictures again with every turn


@dataclass(frozen=True, slots=True)
class PreparedPixels:
    values: bytes  # uint8 [tiles, height, width, 3]
    shape: tuple[int, int, int]  # tiles, height, width
    digest: bytes = b""  # of the values, where these are what is known of them

    @classmethod
    def of(cls, tiles: Tiles) -> "PreparedPixels":
        num_tiles, height, width, _ = tiles.shape
        return cls(tiles.tobytes(), (num_tiles, height, width))


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderInput:
    """The vision encoder takes it as one: a picture, or two frames of a video."""

    digest: bytes  # equal ones have equal features, at equal positions behind equal prompts
    num_tokens: int
    size: tuple[int, int]  # height and width, before they were changed
    pixels: PreparedPixels
    normalisation: Normalisation
    position_grid: tuple[int, int, int] | None = None
    time_shift: int | None = None


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """It is a picture, a page of a PDF, or a video."""

    placeholder: str  # the template's
    text: str  # instead of that
    inputs: tuple[EncoderInput, ...]  # in the order of their tokens


class KeptPixels:
    """Gives up what was used least recently. Belongs to one event loop."""

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._kept: OrderedDict[Hashable, tuple[PreparedPixels, ...]] = (
            OrderedDict()
        )  # least recently used first

    def get(self, key: Hashable) -> tuple[PreparedPixels, ...] | None:
        return self._kept.get(key)

    def keep(self, key: Hashable, pixels: tuple[PreparedPixels, ...]) -> None:
        if key not in self._kept:
            self._num_bytes += _num_bytes(pixels)
        self._kept[key] = pixels
        self._kept.move_to_end(key)
        while self._num_bytes > self._max_bytes:
            self._num_bytes -= _num_bytes(self._kept.popitem(last=False)[1])


def _num_bytes(pixels: tuple[PreparedPixels, ...]) -> int:
    return sum(len(each.values) for each in pixels)
