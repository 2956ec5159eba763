"""Holds prepared images: the text in the prompt, and the input of the vision encoder."""

import struct
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ouzel.prompts.vision.base import ImageLayout, Normalisation, Tiles

# Bytes of cached pixels: clients send a chat's pictures again with every turn.
MAX_CACHED_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class PreparedPixels:
    values: bytes  # uint8 [tiles, height, width, 3]
    shape: tuple[int, int, int]  # tiles, height, width
    digest: bytes = b""  # digest of the values, if they identify the input

    @classmethod
    def from_tiles(cls, tiles: Tiles) -> "PreparedPixels":
        num_tiles, height, width, _ = tiles.shape
        return cls(tiles.tobytes(), (num_tiles, height, width))


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderInput:
    """Holds one input of the vision encoder: a picture, a piece of it, or two frames of a video."""

    digest: bytes  # equal inputs have equal features at equal positions behind equal prompts
    num_tokens: int
    size: tuple[int, int]  # height and width of the original
    pixels: PreparedPixels
    normalisation: Normalisation
    position_grid: tuple[int, int, int] | None = None
    time_shift: int | None = None


def make_encoder_inputs(
    digest: bytes,
    layout: ImageLayout,
    pieces: Sequence[PreparedPixels],
    size: tuple[int, int],
    normalisation: Normalisation,
) -> tuple[EncoderInput, ...]:
    """Returns the inputs of a picture, one for each piece; `size` is its height and width."""
    num_tokens = layout.piece_tokens or (layout.num_tokens,)
    return tuple(
        EncoderInput(
            digest=digest if len(pieces) == 1 else _piece_digest(digest, number),
            num_tokens=count,
            size=size,
            pixels=piece,
            normalisation=normalisation,
            position_grid=layout.position_grid,
        )
        for number, (count, piece) in enumerate(zip(num_tokens, pieces, strict=True))
    )


def _piece_digest(digest: bytes, number: int) -> bytes:
    return blake2b(b"piece" + struct.pack("<q", number) + digest, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """Represents a picture, a page of a PDF, or a video in a prompt."""

    placeholder: str  # the template's text for it
    text: str  # replaces the placeholder
    inputs: tuple[EncoderInput, ...]  # ordered by their tokens


class PixelCache:
    """Caches prepared pixels, and drops the least recently used first.

    It belongs to one event loop.
    """

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._stored: OrderedDict[Hashable, tuple[PreparedPixels, ...]] = OrderedDict()

    def get(self, key: Hashable) -> tuple[PreparedPixels, ...] | None:
        return self._stored.get(key)

    def add(self, key: Hashable, pixels: tuple[PreparedPixels, ...]) -> None:
        if key not in self._stored:
            self._num_bytes += _num_bytes(pixels)
        self._stored[key] = pixels
        self._stored.move_to_end(key)
        while self._num_bytes > self._max_bytes:
            self._num_bytes -= _num_bytes(self._stored.popitem(last=False)[1])


def _num_bytes(pixels: tuple[PreparedPixels, ...]) -> int:
    return sum(len(each.values) for each in pixels)
