"""Builds the files of pictures; the files that Pillow would not write are put together here."""

import struct
import zlib
from hashlib import blake2b
from io import BytesIO

from PIL import Image

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.picture import DIGEST_LEN, Picture, PictureLimits, decode_header
from ouzel.prompts.media.pixels import decode

PATH = "messages[0].content[1].image_url.url"
LIMITS = PictureLimits(max_bytes=2**20, max_pixels=10**6)
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

Rgb = tuple[int, int, int]


def chunk(name: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def png(
    width: int,
    height: int,
    rows: bytes,
    *,
    depth: int = 8,
    colour: int = 2,
    before_data: bytes = b"",
    interlaced: bool = False,
) -> bytes:
    """Returns a PNG file.

    `rows` is the data before compression, with a filter byte for each row. `before_data` holds
    whole chunks to insert before the data.
    """
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    data = chunk(b"IDAT", zlib.compress(rows))
    return PNG_SIGNATURE + chunk(b"IHDR", header) + before_data + data + chunk(b"IEND", b"")


def saved(image: Image.Image, file_format: str, **options: object) -> bytes:
    file = BytesIO()
    image.save(file, file_format, **options)
    return file.getvalue()


def exif(orientation: int) -> bytes:
    return b"Exif\0\0" + b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def plain(
    width: int = 4, height: int = 3, colour: Rgb = (200, 30, 60), file_format: str = "PNG"
) -> bytes:
    return saved(Image.new("RGB", (width, height), colour), file_format)


def read(data: bytes) -> Picture:
    """Reads the header as the limited process does."""
    try:
        header = decode_header(data, LIMITS.max_pixels)
    except InvalidRequest as error:
        raise InvalidRequest(str(error), field=PATH) from None
    digest = blake2b(data, digest_size=DIGEST_LEN).digest()
    return Picture(
        digest, data, header.width, header.height, header.format, header.orientation, PATH
    )


def decoded(picture: Picture) -> Image.Image:
    """Decodes the pixels as the limited process does."""
    try:
        return decode(picture.data, picture.format, picture.orientation)
    except InvalidRequest as error:
        raise InvalidRequest(str(error), field=PATH) from None
