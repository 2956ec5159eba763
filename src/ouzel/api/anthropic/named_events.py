"""Frames events with their names on a line of their own. A stream has no end mark."""

from collections.abc import Iterable

import msgspec

from ouzel.api.http.framing import SSE, Framing


class NamedEvents(Framing, frozen=True, kw_only=True):
    """Frames structs, and names them by their tags."""

    def frames(self, objects: Iterable[object]) -> bytes:
        return b"".join(map(self._frame, objects))

    def _frame(self, event: object) -> bytes:
        assert isinstance(event, msgspec.Struct)
        return f"event: {event.__struct_config__.tag}\n".encode() + self.frame(
            msgspec.json.encode(event)
        )


NAMED_EVENTS = NamedEvents(
    content_type=SSE.content_type,
    before=SSE.before,
    after=SSE.after,
    end=b"",
    comment=b'event: ping\ndata: {"type":"ping"}\n\n',
)
