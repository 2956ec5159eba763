"""Reads the header Range of a download (RFC 9110): one range of bytes."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from ouzel.errors import InvalidRequest

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class RangeNotSatisfiable(InvalidRequest):
    """The range begins behind the end of the file."""

    status = 416


@dataclass(frozen=True, slots=True)
class ByteRange:
    first: int
    end: int  # the position behind the last byte

    async def cut(self, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Yields the bytes of the range; the pieces begin at its first byte."""
        left = self.end - self.first
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece[:left]
                left -= len(piece)
                if left <= 0:
                    return


def read_range(header: str | None, size: int) -> ByteRange | None:
    """Returns the range of a file of `size` bytes; None: the whole file.

    Several ranges and other units are ignored, as the RFC allows. Raises RangeNotSatisfiable.
    """
    match = _RANGE.fullmatch(header or "")
    if match is None or match[0] == "bytes=-":
        return None
    if not match[1]:
        first, end = max(size - int(match[2]), 0), size
    else:
        first, end = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
        if match[2] and int(match[2]) < first:
            return None
    if first >= size:
        raise RangeNotSatisfiable(f"Range must begin before the end of the file, at {size} bytes")
    return ByteRange(first, end)
