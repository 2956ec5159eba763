"""Reads the header of a picture: format and size, read before any pixel is decoded."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any  # keys of the facts that Pillow has read

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.orientation import is_sideways, read_orientation
from ouzel.prompts.media.pillow import FORMATS, open_picture

DIGEST_LEN = 16  # bytes
_WEBP_HEADER_LEN = 30
_14_BITS = 0x3FFF
# A scan of a progressive JPEG takes some 40 bytes, and decoding it passes over all pixels.
_JPEG_SCAN = b"\xff\xda"
_MAX_SCANS = 50  # ten are usual, and one more for each further picture in the file
_BMP_RUN_LENGTHS = (1, 2)  # RLE8 and RLE4, which Pillow decodes in Python, pixel by pixel
_NAMES = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"


@dataclass(frozen=True, slots=True)
class PictureLimits:
    max_bytes: int
    max_pixels: int


@dataclass(frozen=True, slots=True)
class Header:
    width: int  # width for display, after turning by the orientation
    height: int
    format: str  # one of FORMATS
    orientation: int  # 1 to 8, as in EXIF


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Picture:
    """Holds a file with the header of a picture within the limits."""

    digest: bytes  # BLAKE2b-128 of the file
    data: bytes = field(repr=False)  # the file
    width: int  # width for display, as in Header
    height: int
    format: str
    orientation: int
    path: str = field(compare=False)  # the first content part with this file

    @property
    def num_pixels(self) -> int:
        return self.width * self.height


def decode_header(data: bytes, max_pixels: int) -> Header:
    """Reads the header of a picture and checks it. Raises InvalidRequest without a field."""
    # The decoder of WebP allocates memory for the canvas as soon as it is made.
    if (canvas := _webp_canvas(data)) is not None:
        _check_size(canvas, max_pixels)
    try:
        image = open_picture(data, for_pixels=False)
    except Exception:  # Pillow's Python readers raise anything from OSError to IndexError
        raise InvalidRequest(
            f"must be a picture ({_NAMES}), given {len(data)} bytes of another format"
        ) from None
    with image:
        _check_size(image.size, max_pixels)
        # Pillow calls a JPEG with further pictures behind it MPO.
        file_format = image.format if image.format in FORMATS else "JPEG"
        _check_effort(data, file_format, image.info)
        orientation = read_orientation(image.info.get("exif"))
        width, height = reversed(image.size) if is_sideways(orientation) else image.size
    return Header(width, height, file_format, orientation)


def _check_effort(data: bytes, file_format: str, info: Mapping[Any, object]) -> None:
    """Refuses files that take long to decode although they are small. Raises InvalidRequest."""
    if file_format == "BMP" and info.get("compression") in _BMP_RUN_LENGTHS:
        raise InvalidRequest("must not be a BMP with run lengths")
    if file_format == "JPEG" and (num_scans := data.count(_JPEG_SCAN)) > _MAX_SCANS:
        raise InvalidRequest(f"must be a JPEG with <= {_MAX_SCANS} scans, given {num_scans}")


def check_file_size(num_bytes: int, path: str, limits: PictureLimits) -> None:
    """Raises InvalidRequest if the file is too large. `path` names the part in errors."""
    if num_bytes > limits.max_bytes:
        raise InvalidRequest(
            f"must have <= {limits.max_bytes} bytes (max_media_bytes), given {num_bytes}",
            field=path,
        )


def _check_size(size: tuple[int, int], max_pixels: int) -> None:
    width, height = size
    if width * height > max_pixels:
        raise InvalidRequest(
            f"must have <= {max_pixels} pixels (max_media_pixels), given {width}x{height}"
        )
    if width < 1 or height < 1:
        raise InvalidRequest(f"must have pixels, given {width}x{height}")


def _webp_canvas(data: bytes) -> tuple[int, int] | None:
    """Returns the canvas size in a WebP file's first chunk, which is of one of three kinds."""
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < _WEBP_HEADER_LEN:
        return None
    match data[12:16]:
        case b"VP8X":
            low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", data, 24)
            return (high_width << 16 | low_width) + 1, (high_height << 16 | low_height) + 1
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & _14_BITS) + 1, (bits >> 14 & _14_BITS) + 1
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & _14_BITS, height & _14_BITS
    return None
