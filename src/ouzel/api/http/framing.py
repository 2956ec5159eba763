"""A framing tells the objects of a stream apart: as server-sent events the way OpenAI does, or as JSON lines.

After an error the stream ends without its end mark: clients raise on the error, and nothing complete was sent.
"""

from collections.abc import Iterable

import msgspec

# JSON leaves them raw inside strings, and clients that read with `splitlines` would end the line there.
_LINE_ENDS = [
    (char.encode(), f"\\u{ord(char):04x}".encode()) for char in ("\x85", "\u2028", "\u2029")
]

_encode = msgspec.json.Encoder().encode


class Framing(msgspec.Struct, frozen=True, kw_only=True):
    content_type: bytes
    before: bytes  # each object
    after: bytes
    end: bytes  # of a complete stream
    comment: bytes = b""  # that readers skip; empty where they would not

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"content-type", self.content_type),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),  # nginx must not collect chunks
        ]

    def frames(self, objects: Iterable[object]) -> bytes:
        """Returns all of them in one piece: what came in one wake-up leaves in one write."""
        pieces: list[bytes] = []
        for item in objects:
            pieces += (self.before, _encode(item), self.after)
        return _with_escaped_line_ends(b"".join(pieces))

    def framed(self, encoded: bytes) -> bytes:
        """Frames an object that is JSON already."""
        return self.before + _with_escaped_line_ends(encoded) + self.after


def _with_escaped_line_ends(text: bytes) -> bytes:
    for raw, escaped in _LINE_ENDS:
        text = text.replace(raw, escaped)
    return text


SSE = Framing(
    content_type=b"text/event-stream; charset=utf-8",
    before=b"data: ",
    after=b"\n\n",
    end=b"data: [DONE]\n\n",
    comment=b": keep-alive\n\n",
)
JSON_LINES = Framing(content_type=b"application/jsonlines", before=b"", after=b"\n", end=b"")
