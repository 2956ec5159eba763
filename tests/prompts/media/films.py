"""Videos, made by PyAV and Pillow."""

import struct
from collections.abc import Sequence
from fractions import Fraction
from io import BytesIO

import av
import numpy as np
from PIL import Image

from tests.prompts.media.files import saved

_UPRIGHT = struct.pack(">9i", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
_TO_THE_RIGHT = struct.pack(">9i", 0, 0x10000, 0, -0x10000, 0, 0, 0, 0, 0x40000000)
_MIRRORED = struct.pack(">9i", -0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)


def still(number: int, size: tuple[int, int]) -> Image.Image:
    """Returns a frame whose colour tells its number, and whose upper left corner is white."""
    image = Image.new("RGB", size, (number * 6 % 256, 0, 128))
    image.paste((255, 255, 255), (0, 0, size[0] // 2, size[1] // 2))
    return image


def number_of(colour: tuple[int, ...]) -> int:
    return round(colour[0] / 6)


def film(
    num_frames: int,
    size: tuple[int, int] = (64, 32),
    *,
    rate: int = 10,
    codec: str = "libx264",
    form: str = "mp4",
    pixel: Fraction = Fraction(1),
    starts_ms: Sequence[int] = (),
) -> bytes:
    """Returns a file of (width, height), with some frames that are decoded by themselves.

    `pixel` is the shape of one, `starts_ms` tell when frames begin that are not evenly spread.
    """
    file = BytesIO()
    with av.open(file, "w", format=form) as container:
        stream = container.add_stream(codec, rate=rate)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = size
        stream.pix_fmt, stream.gop_size, stream.bit_rate = "yuv420p", 12, 4_000_000
        stream.codec_context.sample_aspect_ratio = pixel
        stream.codec_context.time_base = Fraction(1, 1000 if starts_ms else rate)
        for number in range(num_frames):
            frame = av.VideoFrame.from_ndarray(np.asarray(still(number, size)), format="rgb24")
            frame.pts, frame.time_base = (
                (starts_ms or range(num_frames))[number],
                stream.codec_context.time_base,
            )
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


def held_sideways(mp4: bytes) -> bytes:
    """Says that the camera was held so that frames must be turned to the right."""
    return _held(mp4, _TO_THE_RIGHT)


def mirrored(mp4: bytes) -> bytes:
    """Says that left and right change places, as of some cameras that look at who holds them."""
    return _held(mp4, _MIRRORED)


def _held(mp4: bytes, matrix: bytes) -> bytes:
    assert mp4.count(_UPRIGHT) == 2  # of the whole, and of the track
    before, _, after = mp4.rpartition(_UPRIGHT)
    return before + matrix + after


def moving(
    file_format: str, num_frames: int, size: tuple[int, int] = (64, 32), **options: object
) -> bytes:
    first, *others = (still(number, size) for number in range(num_frames))
    return saved(first, file_format, save_all=True, append_images=others, **options)
