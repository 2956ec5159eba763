"""Names the reasons for which the limited process refuses a sound file."""

from enum import Enum

import msgspec


class RefusalKind(Enum):
    """The errors of `ouzel.audio.errors` that a decoder finds."""

    UNKNOWN = "unknown"
    NO_STREAM = "no_stream"
    EMPTY = "empty"
    DAMAGED = "damaged"
    TOO_LONG = "too_long"
    NO_SPACE = "no_space"  # the server's disk is full, or cannot be written


class Refusal(Exception):
    """The file is refused. `detail` continues the message of the error."""

    def __init__(self, kind: RefusalKind, detail: str = "") -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    kind: RefusalKind
    detail: str
