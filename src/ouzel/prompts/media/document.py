"""A PDF is known by the sizes of its pages, before any of them is rendered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import sqrt

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.picture import PictureLimits, check_file_size

DPI = 150  # print of 9 points is 19 pixels high
MAX_SIDE = 3072  # pixels: of larger sheets, as posters and plans are, fewer to the inch

_POINTS_PER_INCH = 72
_MAX_POINTS = 14_400  # a page's side, as the specification has it
_DIGEST_LEN = 16
_MARK, _MARK_WITHIN = b"%PDF-", 1024  # readers look for the header so far, and so do we

Size = tuple[int, int]  # width and height in pixels


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PdfFile:
    """Holds what begins as PDFs do, and may be none."""

    digest: bytes  # BLAKE2b-128
    data: bytes = field(repr=False)
    path: str = field(compare=False)  # of the content part that named it first


@dataclass(frozen=True, slots=True)
class Document:
    file: PdfFile
    pages: tuple[Size, ...]  # as they are rendered


def check_file(data: bytes, path: str, limits: PictureLimits) -> PdfFile:
    """Takes what may be opened. `path` is the content part's. Raises InvalidRequest.

    Only the bytes count, whatever the part says of them.
    """
    check_file_size(len(data), path, limits)
    if _MARK not in data[:_MARK_WITHIN]:
        raise InvalidRequest(f"must be a PDF, which its {len(data)} bytes are not", field=path)
    return PdfFile(blake2b(data, digest_size=_DIGEST_LEN).digest(), data, path)


def read_document(
    file: PdfFile, sizes: Sequence[tuple[float, float]], limits: PictureLimits
) -> Document:
    """`sizes` are the widths and heights of its pages, in points. Raises InvalidRequest."""
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
    return min(wide, max_pixels), min(
        high, max_pixels
    )  # a line of pixels at least, and no more than there may be
