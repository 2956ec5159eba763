"""Reads the messages of a client: each is a JSON object in a text frame, with a type."""

import binascii
from base64 import b64decode
from dataclasses import dataclass

import msgspec

from ouzel.errors import InvalidRequest
from ouzel.wire.decode import JsonObject, parse_object
from ouzel.wire.validation_errors import show_value

_MAX_ID_CHARS = 512
_TYPES = (
    "session.update",
    "input_audio_buffer.append",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
)


@dataclass(frozen=True, slots=True)
class UpdateSession:
    session: object


@dataclass(frozen=True, slots=True)
class Append:
    data: bytes


@dataclass(frozen=True, slots=True)
class Commit:
    pass


@dataclass(frozen=True, slots=True)
class Clear:
    pass


ClientMessage = UpdateSession | Append | Commit | Clear


class _SoundMessage(msgspec.Struct, tag_field="type", tag="input_audio_buffer.append"):
    """The message that is sent most, in full; other messages are read as objects."""

    audio: str
    event_id: str | None = None


_decode_sound = msgspec.json.Decoder(_SoundMessage).decode


def parse_message(text: bytes) -> JsonObject:
    """Parses a message. Raises InvalidRequest."""
    try:
        message = _decode_sound(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return parse_object(text)
    return {
        "type": "input_audio_buffer.append",
        "audio": message.audio,
        "event_id": message.event_id,
    }


def read_event_id(fields: JsonObject) -> str | None:
    """Returns the client's id of a message, which an error about the message repeats."""
    event_id = fields.get("event_id")
    if event_id is None or (isinstance(event_id, str) and len(event_id) <= _MAX_ID_CHARS):
        return event_id
    raise InvalidRequest(
        f"must be a string of at most {_MAX_ID_CHARS} characters, given {show_value(event_id)}",
        field="event_id",
    )


def read_message(fields: JsonObject) -> ClientMessage:
    """Reads a message from its parsed object. Raises InvalidRequest."""
    match fields.get("type"):
        case "session.update":
            return UpdateSession(fields.get("session"))
        case "input_audio_buffer.append":
            return Append(_decode_audio(fields.get("audio")))
        case "input_audio_buffer.commit":
            return Commit()
        case "input_audio_buffer.clear":
            return Clear()
        case "response.create":
            raise InvalidRequest(
                "must not be response.create: a session of transcription has no responses",
                field="type",
            )
        case other:
            raise InvalidRequest(
                f"must be one of {', '.join(_TYPES)}, given {show_value(other)}", field="type"
            )


def _decode_audio(audio: object) -> bytes:
    try:
        if isinstance(audio, str):
            return b64decode(audio, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise InvalidRequest(f"must be bytes in base64, given {show_value(audio)}", field="audio")
