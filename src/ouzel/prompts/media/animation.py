"""Reads from a file how long each frame of an animated picture is shown, without decoding pixels.

Sources: the specifications of GIF89a, of WebP's container, and of PNG (third edition), `fcTL`.
"""

import struct
from collections.abc import Iterator

from ouzel.prompts.media.png_chunks import SIGNATURE

MAX_FRAMES = 20_000

_BRIEF_S = 0.0101  # frames up to this duration are shown for _USUAL_S, as in browsers
_USUAL_S = 0.1
_GIF_HEADER_LEN = 13
_GIF_IMAGE, _GIF_EXTENSION, _GIF_CONTROL = 0x2C, 0x21, 0xF9


def read_frame_durations(data: bytes) -> list[float] | None:
    """Returns the duration of each frame in seconds; None for another format or a single frame.

    Raises ValueError for too many frames.
    """
    if data[:6] in (b"GIF87a", b"GIF89a"):
        found = _read_gif(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        found = _read_webp(data)
    elif data.startswith(SIGNATURE):
        found = _read_png(data)
    else:
        return None
    durations = list[float]()
    for duration_s in found:
        if len(durations) == MAX_FRAMES:
            raise ValueError(f"it has more than {MAX_FRAMES} frames")
        durations.append(duration_s if duration_s > _BRIEF_S else _USUAL_S)
    return durations if len(durations) > 1 else None


def _read_gif(data: bytes) -> Iterator[float]:
    position, duration_s = _behind_table(data, _GIF_HEADER_LEN, 10), 0.0
    while position + 1 < len(data):
        kind = data[position]
        if kind == _GIF_EXTENSION:
            if data[position + 1] == _GIF_CONTROL and position + 6 <= len(data):
                duration_s = struct.unpack_from("<H", data, position + 4)[0] / 100
            position = _behind_blocks(data, position + 2)
        elif kind == _GIF_IMAGE:
            yield duration_s
            duration_s = 0.0
            position = _behind_blocks(data, _behind_table(data, position + 10, position + 9) + 1)
        else:  # the end of the file, or invalid data
            return


def _behind_table(data: bytes, position: int, flags_at: int) -> int:
    """Returns the end of a colour table at `position`, if the flags say that there is one."""
    flags = data[flags_at] if flags_at < len(data) else 0
    return position + (3 << (flags & 7) + 1 if flags & 0x80 else 0)


def _behind_blocks(data: bytes, position: int) -> int:
    while position < len(data) and data[position]:
        position += data[position] + 1
    return position + 1


def _read_webp(data: bytes) -> Iterator[float]:
    position = 12
    while position + 8 <= len(data):
        name, length = struct.unpack_from("<4sI", data, position)
        if name == b"ANMF" and position + 24 <= len(data):
            yield (struct.unpack_from("<I", data, position + 20)[0] & 0xFFFFFF) / 1000
        position += 8 + length + length % 2


def _read_png(data: bytes) -> Iterator[float]:
    position = len(SIGNATURE)
    while position + 12 <= len(data):
        length, name = struct.unpack_from(">I4s", data, position)
        if name == b"fcTL" and position + 34 <= len(data):
            numerator, denominator = struct.unpack_from(">HH", data, position + 28)
            yield numerator / (denominator or 100)
        position += 12 + length
