"""Serves transcriptions and translations with OVMS's answers and events.

A request with a `response_format` other than json gets OpenAI's form, which OVMS lacks.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, assert_never

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.http.framing import SSE
from ouzel.api.speech.answer import JSON, OpenAiAnswer
from ouzel.api.speech.endpoint import SpeechEndpoint, WrittenAnswer
from ouzel.generation import ServedModel
from ouzel.transcription.events import (
    Segment,
    SegmentDone,
    TextDelta,
    Transcription,
    TranscriptionEvent,
)
from ouzel.transcription.options import SpeechTask, TranscriptionOptions
from ouzel.transcription.transcriber import check_word_times
from ouzel.wire.options import check_model
from ouzel.wire.transcription_objects import WordObject, round_time
from ouzel.wire.transcription_request import (
    Granularity,
    TranscriptionRequest,
    check_stream,
    decode_speech_fields,
    read_speech_options,
)

_SSE_WITHOUT_END = msgspec.structs.replace(SSE, end=b"")


class OvmsSpeechRequest(TranscriptionRequest, kw_only=True):
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None


class OvmsSegment(msgspec.Struct):
    text: str
    start: float
    end: float


class OvmsTranscription(msgspec.Struct):
    text: str
    words: list[WordObject] | UnsetType = UNSET
    segments: list[OvmsSegment] | UnsetType = UNSET


class OvmsTextDelta(msgspec.Struct, tag_field="type", tag="transcript.text.delta"):
    delta: str
    logprobs: tuple[()] = ()


class OvmsTextDone(msgspec.Struct, tag_field="type", tag="transcript.text.done"):
    text: str
    logprobs: tuple[()] = ()


class OvmsAnswer:
    """Writes texts as the model has them, with the space before the first word."""

    def __init__(self, granularities: Sequence[Granularity], *, is_stream: bool) -> None:
        self.is_stream = is_stream
        self.framing = _SSE_WITHOUT_END
        self._granularities = granularities

    def chunks(self, event: TranscriptionEvent, sound_s: float) -> Sequence[object]:
        match event:
            case TextDelta():
                return [OvmsTextDelta(event.text)] if event.text else []
            case SegmentDone():
                return []
            case Transcription():
                return [OvmsTextDone(event.text)]
            case unreachable:
                assert_never(unreachable)

    def whole(self, result: Transcription) -> WrittenAnswer:
        body = OvmsTranscription(result.text)
        if "word" in self._granularities:
            body.words = [
                WordObject(word.text, round_time(word.start_s), round_time(word.end_s))
                for segment in result.segments
                for word in segment.words
            ]
        if "segment" in self._granularities:
            body.segments = [_write_segment(segment) for segment in result.segments]
        return WrittenAnswer(JSON, msgspec.json.encode(body))


def _write_segment(segment: Segment) -> OvmsSegment:
    return OvmsSegment(segment.text, round_time(segment.start_s), round_time(segment.end_s))


class OvmsSpeech:
    """Reads forms as OVMS does: the times of words need no `response_format`."""

    def __init__(self, model: ServedModel, task: SpeechTask) -> None:
        self._model = model
        self._task = task

    def prepare(self, body: bytes) -> tuple[TranscriptionOptions, OvmsAnswer | OpenAiAnswer]:
        fields = decode_speech_fields(body, OvmsSpeechRequest)
        check_model(fields.model, self._model)
        check_stream(fields)
        granularities = fields.timestamp_granularities or ()
        has_words = "word" in granularities
        if has_words:
            check_word_times(self._model)
        options = replace(
            read_speech_options(fields, self._task),
            has_words=has_words,
            num_logprobs=0 if fields.include else None,
        )
        if fields.include or fields.response_format not in (None, "json"):
            return options, OpenAiAnswer(fields, options, self._model)
        return options, OvmsAnswer(granularities, is_stream=bool(fields.stream))


def _make_transcriptions(services: Services) -> SpeechEndpoint:
    return SpeechEndpoint(services, OvmsSpeech(services.model, "transcribe"))


def _make_translations(services: Services) -> SpeechEndpoint:
    return SpeechEndpoint(services, OvmsSpeech(services.model, "translate"))


OPERATIONS = tuple(
    Operation(
        method="post",
        path=path,
        prefixes=PREFIXES,
        profile="ovms",
        is_documented=False,
        endpoint=make,
        choice=choose_for("transcribe"),
        form_body=OvmsSpeechRequest,
    )
    for path, make in (
        ("/v1/audio/transcriptions", _make_transcriptions),
        ("/v1/audio/translations", _make_translations),
    )
)
