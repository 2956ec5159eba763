"""A picture's pixels as a person sees them: turned upright, on white where it is transparent, in RGB."""

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

# What decoding takes of memory for a pixel, at most: 21 of WebP, and 3 for what is made of it.
BYTES_PER_PIXEL = 24

_WHITE = (255, 255, 255)
_PNG_DEPTH_AT = 24
_PNG_SCALES = {
    2: 85,
    4: 17,
}  # Pillow scales grey levels of few bits to eight, but not the transparent one
_HIGH_BYTE = 8


@dataclass(frozen=True, slots=True)
class Resized:
    """Makes one array of a picture."""

    size: tuple[int, int]  # width and height
    resample: int  # the number of a filter of Pillow's

    def __call__(self, image: "Image") -> list[NDArray[np.uint8]]:
        from PIL.Image import Resampling  # noqa: PLC0415  only who has a video needs it

        return [np.asarray(image.resize(self.size, Resampling(self.resample)))]


def decode(data: bytes, file_format: str, orientation: int) -> "Image":
    """Returns the picture in RGB, as it is shown. Raises InvalidRequest, without a field.

    The format and the orientation are those of its header.
    """
    try:
        return turned(_rgb(data, file_format), orientation)
    except (
        Exception
    ) as error:  # whatever Pillow's Python meets in a broken file, and its decoders say
        reason = (
            "takes too much memory" if isinstance(error, MemoryError) else "is cut off or broken"
        )
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
        # What a GIF's first frame does not cover is transparent too.
        return rgb if frame is None or frame == (0, 0, *file.size) else _framed(rgb, frame)


def _transparency(file: "ImageFile", data: bytes, file_format: str) -> object:
    """Returns what Pillow read of a PNG's transparent colour, as a colour of the pixels that it made."""
    transparency: object = file.info.get("transparency")
    depth = data[_PNG_DEPTH_AT] if file_format == "PNG" else 8
    match transparency:
        case int() if file.mode == "L":
            return transparency * _PNG_SCALES.get(depth, 1)
        case (int(red), int(green), int(blue)) if depth == 16:
            return red >> _HIGH_BYTE, green >> _HIGH_BYTE, blue >> _HIGH_BYTE
    return transparency


def _from_16_bits(file: "ImageFile", transparency: object) -> "Image":
    """Takes the high byte, as is done with colours of 16 bits; Pillow would clip at 255."""
    from PIL import Image  # noqa: PLC0415  only who has a picture needs it

    levels = np.asarray(file)
    shown = (levels >> _HIGH_BYTE).astype(np.uint8)
    if isinstance(transparency, int):
        shown[levels == transparency] = 255
    return Image.fromarray(shown).convert("RGB")


def on_white(rgba: "Image") -> "Image":
    from PIL import Image  # noqa: PLC0415  only who has a picture needs it

    shown = Image.new("RGB", rgba.size, _WHITE)
    shown.paste(rgba, mask=rgba)
    return shown


def _framed(rgb: "Image", frame: tuple[int, int, int, int]) -> "Image":
    from PIL import Image  # noqa: PLC0415  only who has a picture needs it

    shown = Image.new("RGB", rgb.size, _WHITE)
    shown.paste(rgb.crop(frame), frame)
    return shown


def turned(image: "Image", orientation: int) -> "Image":
    """`orientation` is 1 to 8, as EXIF has it."""
    from PIL.Image import Transpose  # noqa: PLC0415  only who has a picture needs it

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
