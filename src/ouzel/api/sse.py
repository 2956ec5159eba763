"""Server-sent events as OpenAI frames them: `data: <json>`, an empty line, and `data: [DONE]` at the end.

After an error frame the stream ends without `[DONE]`: clients raise on the error, and nothing complete was sent.
"""

from collections.abc import Iterable

import msgspec

STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx must not collect chunks
]
DONE = b"data: [DONE]\n\n"

# JSON leaves them raw inside strings, and clients that read with `splitlines` would end the line there.
_LINE_ENDS = [(char.encode(), f"\\u{ord(char):04x}".encode()) for char in ("\x85", "\u2028", "\u2029")]

_encode = msgspec.json.Encoder().encode


def frames(objects: Iterable[object]) -> bytes:
    """All of them in one piece: what came in one wake-up leaves in one write."""
    pieces: list[bytes] = []
    for item in objects:
        pieces += (b"data: ", _encode(item), b"\n\n")
    joined = b"".join(pieces)
    for raw, escaped in _LINE_ENDS:
        joined = joined.replace(raw, escaped)
    return joined
