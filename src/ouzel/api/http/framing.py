"""Frames the objects of a stream, as server-sent events in OpenAI's way or as JSON lines.

After an error the stream ends without its end mark: clients raise the error and take nothing for
complete.
"""

from collections.abc import Iterable

import msgspec

# JSON allows these characters in strings, but clients that use `splitlines` would end the line
# there.
_LINE_ENDS = [
    (char.encode(), f"\\u{ord(char):04x}".encode()) for char in ("\x85", "\u2028", "\u2029")
]

_encode = msgspec.json.Encoder().encode


class Framing(msgspec.Struct, frozen=True, kw_only=True):
    content_type: bytes
    before: bytes  # bytes before each object
    after: bytes  # bytes after each object
    end: bytes  # end mark of a complete stream
    comment: bytes = b""  # bytes that readers skip; empty if the format has no comments
    # an error is an object of the stream; else the connection breaks off, as the file is incomplete
    has_errors: bool = True

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"content-type", self.content_type),
            (b"cache-control", b"no-cache"),
            # stops nginx from buffering chunks
            (b"x-accel-buffering", b"no"),
        ]

    def frames(self, objects: Iterable[object]) -> bytes:
        """Frames several objects as one piece of bytes, so that they are sent in one write."""
        pieces: list[bytes] = []
        for item in objects:
            pieces += (self.before, _encode(item), self.after)
        return _with_escaped_line_ends(b"".join(pieces))

    def frame(self, encoded: bytes) -> bytes:
        """Frames an object that is encoded as JSON."""
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
