"""Imports Pillow when the first picture arrives, and lets it read a few formats only."""

import warnings
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING

from ouzel.prompts.media.png_chunks import ANIMATION, SIGNATURE, needed_chunks

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

# The formats of OpenAI's API, and BMP. MPO, the format of phones, begins with a whole JPEG and is
# read as one.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
# Pillow reads these headers in Python; native code decodes the pixels.
_PYTHON_FORMATS = ("PNG", "JPEG", "GIF", "BMP")
_NATIVE_FORMATS = ("WEBP",)
_PLUGINS = {"PNG": "Png", "JPEG": "Jpeg", "WEBP": "WebP", "GIF": "Gif", "BMP": "Bmp"}
_MAX_HEADER_READS = 4000
_MIN_BYTES_PER_READ = 512  # average beyond _MAX_HEADER_READS
# Pillow passes over GIF frames before the requested one in blocks of 255 bytes.
_MIN_BYTES_PER_READ_OF_FRAMES = 16


class _FewReads(BytesIO):
    """A file that allows a limited number of reads: millions of empty chunks would keep the reader
    busy.
    """

    def __init__(self, data: bytes, max_reads: int) -> None:
        super().__init__(data)
        self._reads_left = max_reads

    def read(self, size: int | None = -1, /) -> bytes:
        self._reads_left -= 1
        if self._reads_left < 0:
            raise ValueError("the file has too many parts")
        return super().read(size)


def open_picture(data: bytes, *, for_pixels: bool) -> "ImageFile":
    """Opens a picture and reads its header. Raises any error of Pillow's readers for an invalid
    file.
    """
    formats = _NATIVE_FORMATS if is_read_natively(data) else _PYTHON_FORMATS
    _import_pillow(formats)
    from PIL import Image  # noqa: PLC0415  only requests with pictures need it

    max_reads = _MAX_HEADER_READS + (len(data) // _MIN_BYTES_PER_READ if for_pixels else 0)
    read = needed_chunks(data) if data.startswith(SIGNATURE) else data
    return Image.open(_FewReads(read, max_reads), formats=formats)


def open_animation(data: bytes) -> "ImageFile":
    """Opens an animated picture and reads its header. Raises any error of Pillow's readers."""
    import_pillow()
    from PIL import Image  # noqa: PLC0415  only requests with pictures need it

    read = needed_chunks(data, ANIMATION) if data.startswith(SIGNATURE) else data
    max_reads = _MAX_HEADER_READS + len(data) // _MIN_BYTES_PER_READ_OF_FRAMES
    return Image.open(_FewReads(read, max_reads), formats=FORMATS)


def is_read_natively(data: bytes) -> bool:
    """Tells whether native code reads even the header."""
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def import_pillow() -> None:
    _import_pillow(FORMATS)


@cache
def _import_pillow(formats: tuple[str, ...]) -> None:
    from PIL import Image  # noqa: PLC0415  only requests with pictures need it

    for name in formats:  # else Pillow imports all its plugins to find the formats
        import_module(f"PIL.{_PLUGINS[name]}ImagePlugin")
    Image.MAX_IMAGE_PIXELS = None  # our own limit is checked before any pixel is decoded
    # Warnings about slightly invalid metadata, which many cameras write; the pictures are good.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
