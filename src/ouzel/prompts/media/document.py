"""Represents a PDF file and the sizes of its pages, before they are rendered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import sqrt

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.picture import PictureLimits, check_file_size

DPI = 150  # text of 9 points is 19 pixels high
MAX_SIDE = 3072  # pixels; larger sheets, such as posters, are rendered with fewer DPI

_POINTS_PER_INCH = 72
_MAX_POINTS = 14_400  # longest side of a page in the PDF specification
_DIGEST_LEN = 16  # bytes
_MARK, _MARK_WITHIN = b"%PDF-", 1024  # like other readers, we look for the header within 1024 bytes

Size = tuple[int, int]  # width and height in pixels


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PdfFile:
    """Holds a file that begins like a PDF; it may still be invalid."""

    digest: bytes  # BLAKE2b-128 of the data
    data: bytes = field(repr=False)
    path: str = field(compare=False)  # the first content part with this file


@dataclass(frozen=True, slots=True, weakref_slot=True)
class OtherFile:
    """Holds a file that does not begin like a PDF."""

    data: bytes = field(repr=False)
    path: str  # the first content part with this file


@dataclass(frozen=True, slots=True)
class Document:
    file: PdfFile
    pages: tuple[Size, ...]  # sizes of the rendered pages


def check_file(data: bytes, path: str, limits: PictureLimits) -> PdfFile:
    """Makes a PdfFile if the size and the header are right. `path` names the part in errors.

    Only the bytes count, not the type that the part declares. Raises InvalidRequest.
    """
    check_file_size(len(data), path, limits)
    if not is_pdf(data):
        raise InvalidRequest(
            f"must be a PDF, given {len(data)} bytes of another format", field=path
        )
    return PdfFile(blake2b(data, digest_size=_DIGEST_LEN).digest(), data, path)


def check_any_file(data: bytes, path: str, limits: PictureLimits) -> PdfFile | OtherFile:
    """Makes a PdfFile or an OtherFile if the size is right. Raises InvalidRequest."""
    if is_pdf(data):
        return check_file(data, path, limits)
    check_file_size(len(data), path, limits)
    return OtherFile(data, path)


def is_pdf(data: bytes) -> bool:
    """Tells whether a file begins like a PDF; its first 1024 bytes are enough."""
    return _MARK in data[:_MARK_WITHIN]


def read_document(
    file: PdfFile, sizes: Sequence[tuple[float, float]], limits: PictureLimits
) -> Document:
    """Makes a Document from the widths and heights of its pages in points. Raises
    InvalidRequest.
    """
    for number, (width, height) in enumerate(sizes, 1):
        if not (0 < width <= _MAX_POINTS and 0 < height <= _MAX_POINTS):
            given = f"{width:g}x{height:g} of page {number}"
            raise InvalidRequest(
                f"must be a PDF with pages of <= {_MAX_POINTS} points a side, given {given}",
                field=file.path,
            )
    return Document(
        file, tuple(_rendered(width, height, limits.max_pixels) for width, height in sizes)
    )


def _rendered(width: float, height: float, max_pixels: int) -> Size:
    scale = min(
        DPI / _POINTS_PER_INCH, MAX_SIDE / max(width, height), sqrt(max_pixels / (width * height))
    )
    wide, high = max(int(width * scale), 1), max(int(height * scale), 1)
    # At least one line of pixels, and no more than the limit.
    return min(wide, max_pixels), min(high, max_pixels)
