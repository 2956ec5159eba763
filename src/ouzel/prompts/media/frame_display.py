"""Reads how a container wants a decoded frame shown: rotated, mirrored, or with pixels that are not
square.
"""

import struct
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from ouzel.prompts.media.orientation import UPRIGHT, is_sideways

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

# FFmpeg's display matrix: the point (x, y) is shown at (a x + c y, b x + d y).
_MATRIX = struct.Struct("=9i")
_MAX_STRETCH = 4  # a higher aspect ratio is an error of the file
# (rows become columns, sign of the new x, sign of the new y) -> EXIF orientation
_ORIENTATIONS = {
    (False, 1, 1): UPRIGHT,
    (False, -1, 1): 2,
    (False, -1, -1): 3,
    (False, 1, -1): 4,
    (True, 1, 1): 5,
    (True, -1, 1): 6,
    (True, -1, -1): 7,
    (True, 1, -1): 8,
}


def read_frame_orientation(frame: "VideoFrame") -> int:
    """Returns the orientation as an EXIF number; an angle is rounded to a quarter turn.

    Reading it makes the frame refer to itself, so that it is not freed at once. Call this for one
    frame of a video only.
    """
    matrix = cast("Mapping[str, bytes]", frame.side_data).get("DISPLAYMATRIX")
    if matrix is None:
        return UPRIGHT
    a, b, _, c, d, *_ = _MATRIX.unpack(bytes(matrix))
    if abs(b) + abs(c) > abs(a) + abs(d):
        return _ORIENTATIONS[True, -1 if c < 0 else 1, -1 if b < 0 else 1]
    return _ORIENTATIONS[False, -1 if a < 0 else 1, -1 if d < 0 else 1]


def shown_size(frame: "VideoFrame", aspect_ratio: Fraction | None) -> tuple[int, int]:
    """Returns the width and height for display, neither less than the frame's.

    `aspect_ratio` is the width of a pixel divided by its height, if known.
    """
    width, height, ratio = frame.width, frame.height, aspect_ratio or Fraction(1)
    if 1 < ratio <= _MAX_STRETCH:
        width = round(width * ratio)
    elif 1 > ratio >= Fraction(1, _MAX_STRETCH):
        height = round(height / ratio)
    return (height, width) if is_sideways(read_frame_orientation(frame)) else (width, height)
