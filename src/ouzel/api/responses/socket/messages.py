"""A client sends one JSON object a text frame on a WebSocket, and its type says what it is."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from ouzel.api.responses.socket.steers import QueuedSteer
from ouzel.errors import InvalidRequest, InvalidStreamId
from ouzel.wire.decode import JsonObject, parse_object
from ouzel.wire.validation_errors import NOT_A_FIELD, shown
from ouzel.wire.value_limits import MAX_SHORT_BYTES, check_num_values

_STREAM_ID = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_TYPES = ("response.create", "response.cancel", "response.steer")


@dataclass(frozen=True, slots=True)
class Create:
    """It is kept as the text that came: what that is parsed to is many times longer, and many may wait."""

    text: bytes
    stream_id: str | None  # of its lane; None: the one without a name
    previous_response_id: object
    has_conversation: bool
    generates: bool
    steers: tuple[QueuedSteer, ...] = field(
        default=()
    )  # whose input the body is given, and that it commits
    # the response that the server goes on from, with the input of the steers alone
    follows: str | None = None

    @property
    def num_bytes(self) -> int:
        return len(self.text) + sum(steer.num_bytes for steer in self.steers)

    def body(self) -> JsonObject:
        """Returns that of POST /responses; parses it, which takes long for a long one."""
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
    """It is ours: OpenAI's clients close the connection."""

    response_id: str


@dataclass(frozen=True, slots=True)
class Steer:
    response_id: str
    input: object  # as it came
    num_bytes: int


class _Envelope(msgspec.Struct):
    """Each field as it came, so that the others are skipped: that takes no memory and little time."""

    type: msgspec.Raw = msgspec.Raw()
    stream_id: msgspec.Raw = msgspec.Raw()
    previous_response_id: msgspec.Raw = msgspec.Raw()
    conversation: msgspec.Raw = msgspec.Raw()
    generate: msgspec.Raw = msgspec.Raw()
    stream: msgspec.Raw = msgspec.Raw()
    background: msgspec.Raw = msgspec.Raw()


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
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


def envelope_of(text: bytes) -> JsonObject:
    """Returns what is to be known of a message at once: all of it, but of what begins a response no long field."""
    if len(text) > MAX_SHORT_BYTES:
        check_num_values(text)
    try:
        envelope = _decode_envelope(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return parse_object(text)  # which says what is wrong with it
    fields: JsonObject = {
        name: msgspec.json.decode(value)
        for name, value in msgspec.structs.asdict(envelope).items()
        if value
    }
    return fields if fields.get("type") == "response.create" else parse_object(text)


def message_of(fields: JsonObject, text: bytes) -> ClientMessage:
    """`fields` are its envelope. Raises InvalidRequest for what is none."""
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
                f"must be one of {', '.join(_TYPES)}, given {shown(other)}", field="type"
            )


def _create(fields: JsonObject, text: bytes) -> Create:
    for name, only in (("stream", True), ("background", False)):
        if fields.get(name) not in (only, None):
            raise InvalidRequest(
                f"must not be given on a WebSocket, given {shown(fields[name])}", field=name
            )
    generates = fields.get("generate")
    if generates not in (True, False, None):
        raise InvalidRequest(f"must be true or false, given {shown(generates)}", field="generate")
    return Create(
        text,
        stream_id_of(fields),
        fields.get("previous_response_id"),
        has_conversation=fields.get("conversation") is not None,
        generates=generates is not False,
    )


def _with_input(body: JsonObject, steers: Iterable[QueuedSteer]) -> JsonObject:
    """Puts the queued input before the request's own, in the order in which it was queued."""
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
            f"must be a string or a list of messages, given {shown(value)}", field="input"
        )
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
        raise InvalidRequest(f"{NOT_A_FIELD}: {takes}", field=unknown[0][:60])
