"""Events of a response are server-sent events with their name and, for who wants them so, all about equally long."""

import secrets
import string
from collections.abc import Iterable

import msgspec

from ouzel.api.http.framing import SSE, Framing
from ouzel.config import ServerConfig

_TYPE_STARTS_AT = len('{"type":"')
_OBFUSCATED_TO = 16  # delta and obfuscation together are a multiple of so many characters long
_LETTERS = string.ascii_letters + string.digits


class _Delta(msgspec.Struct):
    delta: str


class EventFraming(msgspec.Struct, frozen=True):
    framing: Framing
    obfuscates: bool = False

    def frames(self, events: Iterable[bytes]) -> bytes:
        """Expects events that are JSON already, the type first."""
        return b"".join(self._frame(event) for event in events)

    def _frame(self, event: bytes) -> bytes:
        name = event_name(event)
        if self.obfuscates and name.endswith(b".delta"):
            event = obfuscated(event)
        return b"event: " + name + b"\n" + self.framing.frame(event)


def stream_framing(config: ServerConfig) -> Framing:
    """Returns how streams of responses are framed: whether they end with `data: [DONE]` is the server's choice."""
    return SSE if config.responses_done else msgspec.structs.replace(SSE, end=b"")


def event_name(event: bytes) -> bytes:
    return event[_TYPE_STARTS_AT : event.index(b'"', _TYPE_STARTS_AT)]


def obfuscated(event: bytes) -> bytes:
    """Pads deltas as OpenAI does, so that sizes on the wire tell less."""
    num_chars = len(msgspec.json.decode(event, type=_Delta).delta)
    padding = "".join(
        secrets.choice(_LETTERS) for _ in range(_OBFUSCATED_TO - num_chars % _OBFUSCATED_TO)
    )
    return event[:-1] + b',"obfuscation":"' + padding.encode() + b'"}'
