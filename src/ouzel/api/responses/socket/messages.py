"""A client sends one JSON object a text frame on a WebSocket, and its type says what it is."""

import re
from dataclasses import dataclass, field

from ouzel.api.responses.socket.steers import QueuedSteer
from ouzel.errors import InvalidRequest, InvalidStreamId
from ouzel.wire.decode import JsonObject
from ouzel.wire.validation_errors import shown

_STREAM_ID = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_TYPES = ("response.create", "response.cancel", "response.steer")


@dataclass(frozen=True, slots=True)
class Create:
    body: JsonObject  # that of POST /responses
    stream_id: str | None  # of its lane; None: the one without a name
    num_bytes: int
    generates: bool
    steers: tuple[QueuedSteer, ...] = field(default=())  # whose input the body has been given, and that it commits

    @property
    def previous_response_id(self) -> object:
        return self.body.get("previous_response_id")


@dataclass(frozen=True, slots=True)
class Cancel:
    """It is ours: OpenAI's clients close the connection."""

    response_id: str


@dataclass(frozen=True, slots=True)
class Steer:
    response_id: str
    input: object  # as it came
    num_bytes: int


ClientMessage = Create | Cancel | Steer


def stream_id_of(fields: JsonObject) -> str | None:
    """Returns which lane a message names; errors about the message go there."""
    stream_id = fields.get("stream_id")
    if stream_id is None:
        return None
    if not isinstance(stream_id, str) or _STREAM_ID.fullmatch(stream_id) is None:
        limit = "1 to 256 letters, digits, underscores, hyphens and periods"
        raise InvalidStreamId(f"must be {limit}, given {shown(stream_id)}", field="stream_id")
    return stream_id


def message_of(fields: JsonObject, num_bytes: int) -> ClientMessage:
    """Raises InvalidRequest for what is none."""
    match fields.get("type"):
        case "response.create":
            return _create(fields, num_bytes)
        case "response.cancel":
            _refuse_others(fields, "response_id")
            return Cancel(_string(fields, "response_id"))
        case "response.steer":
            _refuse_others(fields, "previous_response_id", "input")
            return Steer(_string(fields, "previous_response_id"), _steering_input(fields), num_bytes)
        case other:
            raise InvalidRequest(f"must be one of {', '.join(_TYPES)}, given {shown(other)}", field="type")


def _create(fields: JsonObject, num_bytes: int) -> Create:
    body = {name: value for name, value in fields.items() if name not in ("type", "stream_id", "generate")}
    for name, only in (("stream", True), ("background", False)):
        if body.setdefault(name, only) not in (only, None):
            raise InvalidRequest(f"must not be given on a WebSocket, given {shown(body[name])}", field=name)
    body["stream"] = True
    generates = fields.get("generate")
    if generates not in (True, False, None):
        raise InvalidRequest(f"must be true or false, given {shown(generates)}", field="generate")
    if body.get("input") is None and (body.get("previous_response_id") is not None or generates is False):
        body["input"] = []
    return Create(body, stream_id_of(fields), num_bytes, generates is not False)


def _steering_input(fields: JsonObject) -> object:
    value = fields.get("input")
    if not isinstance(value, str | list):
        raise InvalidRequest(f"must be a string or a list of messages, given {shown(value)}", field="input")
    return value


def _string(fields: JsonObject, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"must be a non-empty string, given {shown(value)}", field=name)
    return value


def _refuse_others(fields: JsonObject, *known: str) -> None:
    unknown = sorted(fields.keys() - {"type", *known})
    if unknown:
        takes = f"{shown(fields['type'])} takes {' and '.join(known)} only"
        raise InvalidRequest(f"{unknown[0][:60]} must not be given: {takes}", param=unknown[0][:60])
