"""Makes the files of videos with PyAV and Pillow."""

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


def read_number(colour: tuple[int, ...]) -> int:
    return round(colour[0] / 6)


def make_film(
    num_frames: int,
    size: tuple[int, int] = (64, 32),
    *,
    rate: int = 10,
    codec: str = "libx264",
    form: str = "mp4",
    pixel: Fraction = Fraction(1),
    starts_ms: Sequence[int] = (),
) -> bytes:
    """Returns the file of a video with a key frame at least every 12 frames.

    `size` is (width, height), `pixel` is the aspect ratio of a pixel, and `starts_ms` holds the
    times at which the frames begin, for frames that are not evenly spread.
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
            frame.pts = (starts_ms or range(num_frames))[number]
            frame.time_base = stream.codec_context.time_base
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


def turn_sideways(mp4: bytes) -> bytes:
    """Marks the file as filmed sideways: players turn its frames to the right."""
    return _replace_matrix(mp4, _TO_THE_RIGHT)


def mirror(mp4: bytes) -> bytes:
    """Marks the file as mirrored, as cameras do that face their user."""
    return _replace_matrix(mp4, _MIRRORED)


def _replace_matrix(mp4: bytes, matrix: bytes) -> bytes:
    assert mp4.count(_UPRIGHT) == 2  # the matrix of the film and the matrix of the track
    before, _, after = mp4.rpartition(_UPRIGHT)
    return before + matrix + after


def moving(
    file_format: str, num_frames: int, size: tuple[int, int] = (64, 32), **options: object
) -> bytes:
    first, *others = (still(number, size) for number in range(num_frames))
    return saved(first, file_format, save_all=True, append_images=others, **options)
