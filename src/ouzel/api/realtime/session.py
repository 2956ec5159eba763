"""Defines the session of a transcription over a WebSocket, and its changes, as OpenAI does."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.transcription.live.intake import InputFormat
from ouzel.transcription.options import TranscriptionOptions, VoiceDetection
from ouzel.wire.decode import JsonObject, decode_object
from ouzel.wire.transcription_request import read_language
from ouzel.wire.validation_errors import show_value

_MAX_PADDING_MS = 10_000


class Pcm(msgspec.Struct, tag_field="type", tag="audio/pcm"):
    """Little-endian 16-bit integers, one channel."""

    rate: Literal[24000] = 24000


class Pcmu(msgspec.Struct, tag_field="type", tag="audio/pcmu"):
    """G.711's mu-law, 8 kHz."""


class Pcma(msgspec.Struct, tag_field="type", tag="audio/pcma"):
    """G.711's A-law, 8 kHz."""


class NoiseReduction(msgspec.Struct):
    """A hint: this server does not filter the sound."""

    type: Literal["near_field", "far_field"] | None = None
    strength: float | None = None


class InputTranscription(msgspec.Struct):
    model: str | None = None
    language: str | None = None
    prompt: str | None = None
    # a hint: text is sent as soon as it is final
    delay: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None
    keywords: None = None
    languages: None = None


class TurnDetection(msgspec.Struct):
    type: Literal["server_vad"] = "server_vad"
    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5
    prefix_padding_ms: Annotated[int, Meta(ge=0, le=_MAX_PADDING_MS)] = 300
    silence_duration_ms: Annotated[int, Meta(ge=0, le=_MAX_PADDING_MS)] = 500
    # without effect: a session of transcription has no responses
    create_response: bool | None = None
    interrupt_response: bool | None = None
    idle_timeout_ms: None = None


class AudioInput(msgspec.Struct):
    format: Pcm | Pcmu | Pcma = msgspec.field(default_factory=Pcm)
    noise_reduction: NoiseReduction | None = None
    transcription: InputTranscription | None = msgspec.field(default_factory=InputTranscription)
    turn_detection: TurnDetection | None = msgspec.field(default_factory=TurnDetection)


class Audio(msgspec.Struct):
    input: AudioInput = msgspec.field(default_factory=AudioInput)


class TranscriptionSession(msgspec.Struct):
    type: Literal["transcription"] = "transcription"
    audio: Audio = msgspec.field(default_factory=Audio)
    include: list[Literal["item.input_audio_transcription.logprobs"]] | None = None

    @property
    def model_name(self) -> str | None:
        transcription = self.audio.input.transcription
        return None if transcription is None else transcription.model

    @property
    def input_format(self) -> InputFormat:
        return InputFormat(msgspec.to_builtins(self.audio.input.format)["type"])

    @property
    def detection(self) -> VoiceDetection | None:
        found = self.audio.input.turn_detection
        if found is None:
            return None
        return VoiceDetection(
            threshold=found.threshold,
            prefix_padding_ms=found.prefix_padding_ms,
            silence_duration_ms=found.silence_duration_ms,
        )

    def read_options(self) -> TranscriptionOptions | None:
        """Returns the options of a turn; None: turns are not transcribed."""
        transcription = self.audio.input.transcription
        if transcription is None:
            return None
        return TranscriptionOptions(
            language=read_language(transcription.language),
            prompt=transcription.prompt or "",
            num_logprobs=0 if self.include else None,
        )


def make_session(model_name: str | None) -> TranscriptionSession:
    session = TranscriptionSession()
    session.audio.input.transcription = InputTranscription(model=model_name)
    return session


def update_session(session: TranscriptionSession, update: object) -> TranscriptionSession:
    """Returns the session with the fields of an update; a null clears its field.

    Raises InvalidRequest.
    """
    if not isinstance(update, dict):
        raise InvalidRequest(f"must be an object, given {show_value(update)}", field="session")
    kind = update.get("type")
    if kind == "realtime":
        raise InvalidRequest(
            "must be transcription: this server turns speech into text, and has no speech-to-speech"
            " sessions, given 'realtime'",
            field="session.type",
        )
    try:
        merged = decode_object(_merge(msgspec.to_builtins(session), update), TranscriptionSession)
        _check_turn_language(merged)
    except InvalidRequest as error:
        raise (error if error.param is None else error.at(f"session.{error.param}")) from error
    return merged


def _check_turn_language(session: TranscriptionSession) -> None:
    try:
        session.read_options()
    except InvalidRequest as error:
        raise error.at("audio.input.transcription.language") from error


def _merge(current: JsonObject, update: JsonObject) -> JsonObject:
    """Merges objects in depth; a format replaces the whole format before it."""
    merged = dict(current)
    for name, value in update.items():
        old = merged.get(name)
        is_deep = isinstance(old, dict) and isinstance(value, dict) and name != "format"
        merged[name] = _merge(old, value) if is_deep else value  # type: ignore[arg-type]
    return merged
