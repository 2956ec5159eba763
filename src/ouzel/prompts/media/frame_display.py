"""How a container says that a decoded frame is to be shown: turned or mirrored, and with pixels that are no squares."""

import struct
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from ouzel.prompts.media.orientation import UPRIGHT, is_sideways

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

_MATRIX = struct.Struct("=9i")  # FFmpeg's display matrix: (x, y) is shown at (a x + c y, b x + d y)
_MAX_STRETCH = 4  # what says more is a mistake
_ORIENTATIONS = {  # EXIF's, by whether rows become columns, and the signs of what x and y become
    (False, 1, 1): UPRIGHT,
    (False, -1, 1): 2,
    (False, -1, -1): 3,
    (False, 1, -1): 4,
    (True, 1, 1): 5,
    (True, -1, 1): 6,
    (True, -1, -1): 7,
    (True, 1, -1): 8,
}


def orientation_of(frame: "VideoFrame") -> int:
    """Returns it as EXIF numbers it. An angle that is no quarter turn counts as the nearest.

    A frame that has been asked refers to itself, and is not freed at once: of a film one is enough.
    """
    matrix = cast("Mapping[str, bytes]", frame.side_data).get("DISPLAYMATRIX")
    if matrix is None:
        return UPRIGHT
    a, b, _, c, d, *_ = _MATRIX.unpack(bytes(matrix))
    if abs(b) + abs(c) > abs(a) + abs(d):
        return _ORIENTATIONS[True, -1 if c < 0 else 1, -1 if b < 0 else 1]
    return _ORIENTATIONS[False, -1 if a < 0 else 1, -1 if d < 0 else 1]


def shown_size(frame: "VideoFrame", aspect_ratio: Fraction | None) -> tuple[int, int]:
    """Returns width and height, neither less than the frame's; `aspect_ratio` is a pixel's, where it is known."""
    width, height, ratio = frame.width, frame.height, aspect_ratio or Fraction(1)
    if 1 < ratio <= _MAX_STRETCH:
        width = round(width * ratio)
    elif 1 > ratio >= Fraction(1, _MAX_STRETCH):
        height = round(height / ratio)
    return (height, width) if is_sideways(orientation_of(frame)) else (width, height)
