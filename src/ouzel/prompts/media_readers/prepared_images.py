"""Holds prepared images and sounds: the text in the prompt, and the input of the encoder."""

import struct
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, TypeVar

from ouzel.prompts.vision.base import ImageLayout, Normalisation, Tiles
from ouzel.types.engine_request import ImageInput, SoundInput

Runs = tuple[tuple[int, int], ...]  # first token and number of tokens of each run

# Bytes of cached pixels or features: clients send a chat's media again with every turn.
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

    @property
    def num_bytes(self) -> int:
        return len(self.pixels.values)

    def place(self, runs: Runs) -> ImageInput:
        """Returns the input for the engine, with the places of its tokens in the prompt."""
        return ImageInput(
            digest=self.digest,
            runs=runs,
            shape=self.pixels.shape,
            pixels=self.pixels.values,
            rescale=self.normalisation.rescale,
            mean=self.normalisation.mean,
            std=self.normalisation.std,
            size=self.size,
            position_grid=self.position_grid,
            time_shift=self.time_shift,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundEncoderInput:
    """Holds the features of a sound for the audio encoder."""

    digest: bytes
    num_tokens: int
    shape: tuple[int, int]  # mel bins, frames
    features: bytes  # float32 [mel bins, frames]
    num_frames: int  # frames of the sound; silence follows them

    @property
    def num_bytes(self) -> int:
        return len(self.features)

    def place(self, runs: Runs) -> SoundInput:
        """Returns the input for the engine, with the places of its tokens in the prompt."""
        return SoundInput(
            digest=self.digest,
            runs=runs,
            shape=self.shape,
            features=self.features,
            num_frames=self.num_frames,
        )


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
    """Represents a picture, a page of a PDF, a video or a sound in a prompt."""

    placeholder: str  # the template's text for it
    text: str  # replaces the placeholder
    inputs: tuple[EncoderInput | SoundEncoderInput, ...]  # ordered by their tokens


Value = TypeVar("Value")


class SizedCache(Generic[Value]):
    """Caches prepared media up to a number of bytes, and drops the least recently used first.

    It belongs to one event loop.
    """

    def __init__(
        self, count_bytes: Callable[[Value], int], max_bytes: int = MAX_CACHED_BYTES
    ) -> None:
        self._count_bytes = count_bytes
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._stored: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        return self._stored.get(key)

    def add(self, key: Hashable, value: Value) -> None:
        if key not in self._stored:
            self._num_bytes += self._count_bytes(value)
        self._stored[key] = value
        self._stored.move_to_end(key)
        while self._num_bytes > self._max_bytes:
            self._num_bytes -= self._count_bytes(self._stored.popitem(last=False)[1])


PixelCache = SizedCache[tuple[PreparedPixels, ...]]  # the pieces of pictures


def make_pixel_cache() -> PixelCache:
    return PixelCache(lambda pixels: sum(len(each.values) for each in pixels))
