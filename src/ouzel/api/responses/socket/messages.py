"""Reads the messages of a client: each is a JSON object in a text frame, with a type."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from ouzel.api.responses.socket.steers import QueuedSteer
from ouzel.errors import InvalidRequest
from ouzel.wire.decode import JsonObject, parse_object
from ouzel.wire.validation_errors import NOT_A_FIELD, show_value
from ouzel.wire.value_limits import MAX_SHORT_BYTES, check_num_values

_STREAM_ID = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_TYPES = ("response.create", "response.cancel", "response.steer")


class InvalidStreamId(InvalidRequest):
    """The name of a WebSocket's stream is not allowed."""

    code = "invalid_stream_id"


@dataclass(frozen=True, slots=True)
class Create:
    """Asks for a response. It holds the text of the message, not the parsed body.

    A parsed body is many times longer, and many requests may wait.
    """

    text: bytes
    stream_id: str | None  # name of the lane; None: the lane without a name
    previous_response_id: object
    has_conversation: bool
    generates: bool
    # steers whose input comes before the body's own, and is committed by this request
    steers: tuple[QueuedSteer, ...] = field(default=())
    # the response that the server continues with the input of the steers alone
    follows: str | None = None

    @property
    def num_bytes(self) -> int:
        return len(self.text) + sum(steer.num_bytes for steer in self.steers)

    def body(self) -> JsonObject:
        """Parses the message into a body for POST /responses; long messages take long."""
        fields = parse_object(self.text)
        body = {
            name: value
            for name, value in fields.items()
            if name not in ("type", "stream_id", "generate")
        }
        body["stream"] = True
        if self.follows is not None:
            body |= {"previous_response_id": self.follows, "input": []}
        if body.get("input") is None and (
            body.get("previous_response_id") is not None or not self.generates
        ):
            body["input"] = []
        return _with_input(body, self.steers) if self.steers else body


@dataclass(frozen=True, slots=True)
class Cancel:
    """Asks to cancel a response.

    OpenAI's API lacks this message: its clients close the connection.
    """

    response_id: str


@dataclass(frozen=True, slots=True)
class Steer:
    response_id: str
    input: object  # the client's value, unchanged
    num_bytes: int


class _Envelope(msgspec.Struct):
    """Selects the fields that are known at once, undecoded.

    Other fields are skipped, which is cheap.
    """

    type: msgspec.Raw = msgspec.Raw()
    stream_id: msgspec.Raw = msgspec.Raw()
    previous_response_id: msgspec.Raw = msgspec.Raw()
    conversation: msgspec.Raw = msgspec.Raw()
    generate: msgspec.Raw = msgspec.Raw()
    stream: msgspec.Raw = msgspec.Raw()
    background: msgspec.Raw = msgspec.Raw()


_envelope_decoder = msgspec.json.Decoder(_Envelope).decode
ClientMessage = Create | Cancel | Steer


def read_stream_id(fields: JsonObject) -> str | None:
    """Returns the name of the lane in a message. Errors about the message go to this lane."""
    stream_id = fields.get("stream_id")
    if stream_id is None:
        return None
    if not isinstance(stream_id, str) or _STREAM_ID.fullmatch(stream_id) is None:
        limit = "1 to 256 letters, digits, underscores, hyphens and periods"
        raise InvalidStreamId(f"must be {limit}, given {show_value(stream_id)}", field="stream_id")
    return stream_id


def decode_envelope(text: bytes) -> JsonObject:
    """Decodes a client's message.

    For a `response.create` it returns only the fields of `_Envelope` and skips all other fields,
    such as a long `input`. For other types it returns all fields. Raises InvalidRequest.
    """
    if len(text) > MAX_SHORT_BYTES:
        check_num_values(text)
    try:
        envelope = _envelope_decoder(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return parse_object(text)  # raises the error
    fields: JsonObject = {
        name: msgspec.json.decode(value)
        for name, value in msgspec.structs.asdict(envelope).items()
        if value
    }
    return fields if fields.get("type") == "response.create" else parse_object(text)


def read_message(fields: JsonObject, text: bytes) -> ClientMessage:
    """Reads a message from its envelope `fields` and its text. Raises InvalidRequest."""
    match fields.get("type"):
        case "response.create":
            return _create(fields, text)
        case "response.cancel":
            _refuse_others(fields, "response_id")
            return Cancel(_string(fields, "response_id"))
        case "response.steer":
            _refuse_others(fields, "previous_response_id", "input")
            return Steer(
                _string(fields, "previous_response_id"), _steering_input(fields), len(text)
            )
        case other:
            raise InvalidRequest(
                f"must be one of {', '.join(_TYPES)}, given {show_value(other)}", field="type"
            )


def _create(fields: JsonObject, text: bytes) -> Create:
    for name, only in (("stream", True), ("background", False)):
        if fields.get(name) not in (only, None):
            raise InvalidRequest(
                f"must not be given on a WebSocket, given {show_value(fields[name])}", field=name
            )
    generates = fields.get("generate")
    if generates not in (True, False, None):
        raise InvalidRequest(
            f"must be true or false, given {show_value(generates)}", field="generate"
        )
    return Create(
        text,
        read_stream_id(fields),
        fields.get("previous_response_id"),
        has_conversation=fields.get("conversation") is not None,
        generates=generates is not False,
    )


def _with_input(body: JsonObject, steers: Iterable[QueuedSteer]) -> JsonObject:
    """Puts the queued input before the request's own input, in the order of the queue."""
    own = body.get("input")
    items: list[object] = [item for steer in steers for item in steer.items]
    if isinstance(own, str):
        own = [{"type": "message", "role": "user", "content": own}]
    if isinstance(own, list):
        items += own
    return {**body, "input": items}


def _steering_input(fields: JsonObject) -> object:
    value = fields.get("input")
    if not isinstance(value, str | list):
        raise InvalidRequest(
            f"must be a string or a list of messages, given {show_value(value)}", field="input"
        )
    return value


def _string(fields: JsonObject, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"must be a non-empty string, given {show_value(value)}", field=name)
    return value


def _refuse_others(fields: JsonObject, *known: str) -> None:
    unknown = sorted(fields.keys() - {"type", *known})
    if unknown:
        takes = f"{show_value(fields['type'])} takes {' and '.join(known)} only"
        raise InvalidRequest(f"{NOT_A_FIELD}: {takes}", field=unknown[0][:60])
