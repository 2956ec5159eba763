"""Frames the events of a response as server-sent events with names.

On demand, padding makes all deltas about equally long.
"""

import secrets
import string
from collections.abc import Iterable

import msgspec

from ouzel.api.http.framing import SSE, Framing
from ouzel.config import ServerConfig

_TYPE_STARTS_AT = len('{"type":"')
# The characters of delta and obfuscation together are a multiple of this number.
_OBFUSCATED_TO = 16
_LETTERS = string.ascii_letters + string.digits


class _Delta(msgspec.Struct):
    delta: str


class EventFraming(msgspec.Struct, frozen=True):
    framing: Framing
    obfuscates: bool = False

    def frames(self, events: Iterable[bytes]) -> bytes:
        """Frames events that are encoded as JSON, with the type first."""
        return b"".join(self._frame(event) for event in events)

    def _frame(self, event: bytes) -> bytes:
        name = event_name(event)
        if self.obfuscates and name.endswith(b".delta"):
            event = obfuscate(event)
        return b"event: " + name + b"\n" + self.framing.frame(event)


def stream_framing(config: ServerConfig) -> Framing:
    """Returns the framing of response streams. The server's options decide about `data: [DONE]`."""
    return SSE if config.responses_done else msgspec.structs.replace(SSE, end=b"")


def event_name(event: bytes) -> bytes:
    return event[_TYPE_STARTS_AT : event.index(b'"', _TYPE_STARTS_AT)]


def obfuscate(event: bytes) -> bytes:
    """Pads the delta of an event, as OpenAI does, so that sizes on the wire reveal less."""
    num_chars = len(msgspec.json.decode(event, type=_Delta).delta)
    padding = "".join(
        secrets.choice(_LETTERS) for _ in range(_OBFUSCATED_TO - num_chars % _OBFUSCATED_TO)
    )
    return event[:-1] + b',"obfuscation":"' + padding.encode() + b'"}'
