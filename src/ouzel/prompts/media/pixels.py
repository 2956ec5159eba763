"""Decodes the pixels of a picture for display: upright, with white behind transparent pixels, in
RGB.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.orientation import UPRIGHT
from ouzel.prompts.media.pillow import open_picture

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

# Memory per pixel for decoding, at most: 21 bytes for WebP, and 3 for the result.
BYTES_PER_PIXEL = 24

_WHITE = (255, 255, 255)
_PNG_DEPTH_AT = 24  # offset of the bit depth in a PNG file
# bits -> factor. Pillow scales grey levels of few bits to eight, but not the transparent level.
_PNG_SCALES = {2: 85, 4: 17}
_HIGH_BYTE = 8


@dataclass(frozen=True, slots=True)
class Resized:
    """Resizes a picture; it is a Preparation."""

    size: tuple[int, int]  # width and height
    resample: int  # the number of Pillow's filter

    def __call__(self, image: "Image") -> list[NDArray[np.uint8]]:
        from PIL.Image import Resampling  # noqa: PLC0415  only requests with videos need it

        return [np.asarray(image.resize(self.size, Resampling(self.resample)))]


def decode(data: bytes, file_format: str, orientation: int) -> "Image":
    """Decodes a picture to RGB, as it is displayed. Raises InvalidRequest without a field.

    `file_format` and `orientation` are the values from its header.
    """
    try:
        return turned(_rgb(data, file_format), orientation)
    except Exception as error:  # Pillow and its decoders raise any error for a broken file
        is_large = isinstance(error, MemoryError)
        reason = "takes too much memory" if is_large else "is cut off or broken"
        raise InvalidRequest(
            f"must be a whole picture, given a {file_format} file that {reason}"
        ) from None


def _rgb(data: bytes, file_format: str) -> "Image":
    with open_picture(data, for_pixels=True) as file:
        frame = file.tile[0][1] if file_format == "GIF" and file.tile else None
        file.load()
        transparency = _transparency(file, data, file_format)
        if file.mode == "I;16":
            return _from_16_bits(file, transparency)
        if transparency is not None:
            file.info["transparency"] = transparency
        if transparency is not None or file.has_transparency_data:
            return on_white(file.convert("RGBA"))
        rgb = file.convert("RGB")
        # The area outside a GIF's first frame is transparent, too.
        return rgb if frame is None or frame == (0, 0, *file.size) else _framed(rgb, frame)


def _transparency(file: "ImageFile", data: bytes, file_format: str) -> object:
    """Returns the transparent colour of a PNG on the scale of the pixels that Pillow made."""
    transparency: object = file.info.get("transparency")
    depth = data[_PNG_DEPTH_AT] if file_format == "PNG" else 8
    match transparency:
        case int() if file.mode == "L":
            return transparency * _PNG_SCALES.get(depth, 1)
        case (int(red), int(green), int(blue)) if depth == 16:
            return red >> _HIGH_BYTE, green >> _HIGH_BYTE, blue >> _HIGH_BYTE
    return transparency


def _from_16_bits(file: "ImageFile", transparency: object) -> "Image":
    """Takes the high bytes of grey levels, as is usual for 16-bit colours; Pillow would clip at
    255.
    """
    from PIL import Image  # noqa: PLC0415  only requests with pictures need it

    levels = np.asarray(file)
    shown = (levels >> _HIGH_BYTE).astype(np.uint8)
    if isinstance(transparency, int):
        shown[levels == transparency] = 255
    return Image.fromarray(shown).convert("RGB")


def on_white(rgba: "Image") -> "Image":
    from PIL import Image  # noqa: PLC0415  only requests with pictures need it

    shown = Image.new("RGB", rgba.size, _WHITE)
    shown.paste(rgba, mask=rgba)
    return shown


def _framed(rgb: "Image", frame: tuple[int, int, int, int]) -> "Image":
    from PIL import Image  # noqa: PLC0415  only requests with pictures need it

    shown = Image.new("RGB", rgb.size, _WHITE)
    shown.paste(rgb.crop(frame), frame)
    return shown


def turned(image: "Image", orientation: int) -> "Image":
    """Turns a picture upright. `orientation` is 1 to 8, as in EXIF."""
    from PIL.Image import Transpose  # noqa: PLC0415  only requests with pictures need it

    ways = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image if orientation == UPRIGHT else image.transpose(ways[orientation])
