"""Reads and writes the frames of the connection into a sandbox (see inside/driver.py).

Everything that comes out of a sandbox may be forged by the code that runs there. Lengths are
checked before anything is read, and headers are decoded into records.
"""

import asyncio
import struct
from typing import Literal

import msgspec

from ouzel.hosted_tools.code_interpreter.records import MAX_LISTED_FILES

_LENGTHS = struct.Struct("!II")
_MAX_HEADER = 1 << 20
_MAX_PAYLOAD = 4 << 20
PIECE_BYTES = 1 << 20  # longest piece of a file in one frame


class FrameFault(Exception):
    """A frame breaks the rules: the program inside is not our driver any more."""


class FileFacts(msgspec.Struct, frozen=True, array_like=True):
    path: str
    size_bytes: int
    changed_ns: int


class Header(msgspec.Struct, frozen=True):
    kind: Literal["output", "stdout", "stderr", "image", "data", "done"]
    # the fields below belong to the last frame
    error: str | None = None
    lost: bool = False  # the variables of Python are gone
    dropped: int = 0  # bytes of output that were left out
    exit: int | None = None
    files: list[FileFacts] = []
    changed: list[str] = []
    held: list[str] = []  # names of the limits that the driver has set
    python: str = ""


_HEADER = msgspec.json.Decoder(Header)


async def read_frame(reader: asyncio.StreamReader) -> tuple[Header, bytes]:
    """Reads a frame. Raises FrameFault, and EOFError or ConnectionError if the sandbox ended."""
    header_len, payload_len = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
    if header_len > _MAX_HEADER or payload_len > _MAX_PAYLOAD:
        raise FrameFault(f"a frame of {header_len} + {payload_len} bytes")
    try:
        header = _HEADER.decode(await reader.readexactly(header_len))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameFault(str(error)) from error
    if max(len(header.files), len(header.changed)) > MAX_LISTED_FILES:
        raise FrameFault("too many files")
    return header, await reader.readexactly(payload_len)


def write_frame(header: dict[str, object], payload: bytes = b"") -> bytes:
    text = msgspec.json.encode(header)
    return _LENGTHS.pack(len(text), len(payload)) + text + payload
