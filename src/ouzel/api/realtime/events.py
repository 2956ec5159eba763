"""Defines the events of a session of transcription, as OpenAI does (`RealtimeServerEvent`)."""

import secrets
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.api.http.faults import Fault
from ouzel.wire.logprobs import TopLogprob
from ouzel.wire.transcription_objects import TokensUsage

_TRANSCRIPTION = "conversation.item.input_audio_transcription"


def _new_event_id() -> str:
    return f"event_{secrets.token_hex(12)}"


class ServerEvent(msgspec.Struct, kw_only=True, tag_field="type"):
    event_id: str = msgspec.field(default_factory=_new_event_id)


class SessionCreated(ServerEvent, tag="session.created"):
    session: dict[str, object]


class SessionUpdated(ServerEvent, tag="session.updated"):
    session: dict[str, object]


class StartedSpeech(ServerEvent, tag="input_audio_buffer.speech_started"):
    audio_start_ms: int
    item_id: str


class StoppedSpeech(ServerEvent, tag="input_audio_buffer.speech_stopped"):
    audio_end_ms: int
    item_id: str


class Committed(ServerEvent, tag="input_audio_buffer.committed"):
    item_id: str
    previous_item_id: str | None


class Cleared(ServerEvent, tag="input_audio_buffer.cleared"):
    pass


class InputAudio(msgspec.Struct, tag_field="type", tag="input_audio"):
    transcript: str | None = None


class UserItem(msgspec.Struct, tag_field="type", tag="message"):
    id: str
    object: Literal["realtime.item"] = "realtime.item"
    status: Literal["completed"] = "completed"
    role: Literal["user"] = "user"
    content: list[InputAudio] = msgspec.field(default_factory=lambda: [InputAudio()])


class ItemAdded(ServerEvent, tag="conversation.item.added"):
    item: UserItem
    previous_item_id: str | None


class ItemDone(ServerEvent, tag="conversation.item.done"):
    item: UserItem
    previous_item_id: str | None


class TranscriptionDelta(ServerEvent, tag=f"{_TRANSCRIPTION}.delta"):
    item_id: str
    delta: str
    content_index: int = 0
    logprobs: list[TopLogprob] | UnsetType = UNSET


class TranscriptionCompleted(ServerEvent, tag=f"{_TRANSCRIPTION}.completed"):
    item_id: str
    transcript: str
    usage: TokensUsage
    content_index: int = 0
    logprobs: list[TopLogprob] | UnsetType = UNSET


class ErrorFacts(msgspec.Struct, kw_only=True):
    type: str
    code: str | None
    message: str
    param: str | None

    @classmethod
    def of(cls, fault: Fault) -> "ErrorFacts":
        return cls(type=fault.type, code=fault.code, message=fault.message, param=fault.param)


class TranscriptionFailed(ServerEvent, tag=f"{_TRANSCRIPTION}.failed"):
    item_id: str
    error: ErrorFacts
    content_index: int = 0


class MessageError(ErrorFacts, kw_only=True):
    event_id: str | None  # the id of the client's message


class ErrorEvent(ServerEvent, tag="error"):
    error: MessageError

    @classmethod
    def about(cls, fault: Fault, event_id: str | None) -> "ErrorEvent":
        facts = ErrorFacts.of(fault)
        return cls(error=MessageError(**msgspec.structs.asdict(facts), event_id=event_id))
