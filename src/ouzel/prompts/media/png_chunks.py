"""Reduces a PNG to the chunks that its pixels need, and the orientation of the camera.

Other chunks, such as texts and profiles, may be compressed a thousandfold, in any number. Chunks of
an animation would change which picture is displayed.
"""

import struct
from collections.abc import Iterator, Set

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_END = b"IEND"
_METADATA = b"eXIf"
_NEEDED = frozenset((b"IHDR", b"PLTE", b"tRNS", b"IDAT", _END, _METADATA))
ANIMATION = frozenset((b"acTL", b"fcTL", b"fdAT"))  # further chunks of an animated picture
_AROUND_CONTENT = 12  # bytes: the length and the name before the content, the checksum behind
_MAX_CHUNKS = 4000
_MIN_BYTES_PER_CHUNK = 512  # average of the chunks beyond _MAX_CHUNKS


def needed_chunks(data: bytes, further: Set[bytes] = frozenset()) -> bytes:
    """Returns the PNG with the needed chunks, and the chunks named in `further`.

    Raises ValueError for too many chunks: millions of empty ones would keep the reader busy.
    """
    pieces = list(_needed_pieces(data, _NEEDED | further))
    metadata = [piece for piece in pieces if _read_chunk_name(piece) == _METADATA]
    others = [piece for piece in pieces if _read_chunk_name(piece) != _METADATA]
    # Metadata may stand behind the pixels, where a reader of the header does not find them.
    return b"".join((SIGNATURE, *others[:1], *metadata[:1], *others[1:]))


def _needed_pieces(data: bytes, needed: Set[bytes]) -> Iterator[bytes]:
    position = len(SIGNATURE)
    for _ in range(_MAX_CHUNKS + len(data) // _MIN_BYTES_PER_CHUNK):
        if position + _AROUND_CONTENT > len(data):
            return  # the file is cut off; the reader of the chunks notices it
        length, name = struct.unpack_from(">I4s", data, position)
        end = position + _AROUND_CONTENT + length
        if name in needed:
            yield data[position:end]
        if name == _END:
            return
        position = end
    raise ValueError("the file has too many chunks")


def _read_chunk_name(piece: bytes) -> bytes:
    return piece[4:8]
