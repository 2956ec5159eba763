"""Of a PNG only those chunks are given to its reader that its pixels need, and how the camera was held.

The others, texts and profiles, may be compressed a thousandfold, and there may be any number of them; frames of an
animation would change which picture is shown.
"""

import struct
from collections.abc import Iterator, Set

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_END = b"IEND"
_METADATA = b"eXIf"
_NEEDED = frozenset((b"IHDR", b"PLTE", b"tRNS", b"IDAT", _END, _METADATA))
ANIMATION = frozenset((b"acTL", b"fcTL", b"fdAT"))  # what a picture that moves needs beside these
_AROUND_CONTENT = 12  # the length and the name before it, the checksum behind
_MAX_CHUNKS = 4000
_MIN_BYTES_PER_CHUNK = 512  # on average, beyond those


def needed_chunks(data: bytes, further: Set[bytes] = frozenset()) -> bytes:
    """Raises ValueError, where millions of empty chunks would keep the interpreter busy."""
    pieces = list(_needed_pieces(data, _NEEDED | further))
    metadata = [piece for piece in pieces if _name_of(piece) == _METADATA]
    others = [piece for piece in pieces if _name_of(piece) != _METADATA]
    # Metadata may be behind the pixels, where nobody who reads the header sees them.
    return b"".join((SIGNATURE, *others[:1], *metadata[:1], *others[1:]))


def _needed_pieces(data: bytes, needed: Set[bytes]) -> Iterator[bytes]:
    position = len(SIGNATURE)
    for _ in range(_MAX_CHUNKS + len(data) // _MIN_BYTES_PER_CHUNK):
        if position + _AROUND_CONTENT > len(data):
            return  # it is cut off; who reads the chunks notices
        length, name = struct.unpack_from(">I4s", data, position)
        end = position + _AROUND_CONTENT + length
        if name in needed:
            yield data[position:end]
        if name == _END:
            return
        position = end
    raise ValueError("the file has too many chunks")


def _name_of(piece: bytes) -> bytes:
    return piece[4:8]
