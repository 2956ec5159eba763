"""Writes the answers of transcriptions and translations in OpenAI's forms."""

from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.api.http.framing import SSE
from ouzel.api.speech.endpoint import WrittenAnswer
from ouzel.generation import ServedModel
from ouzel.transcription.events import SegmentDone, TextDelta, Transcription, TranscriptionEvent
from ouzel.transcription.options import TranscriptionOptions
from ouzel.transcription.subtitles import write_srt, write_vtt
from ouzel.types.step_output import PositionLogprobs
from ouzel.wire.logprobs import TopLogprob, token_text
from ouzel.wire.transcription_objects import (
    TextDeltaEvent,
    TextDoneEvent,
    TranscriptionObject,
    name_language,
    round_time,
    write_logprobs,
    write_segment_event,
    write_usage,
    write_verbose,
)
from ouzel.wire.transcription_request import ResponseFormat, SpeechFields, TranscriptionRequest

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


class OpenAiAnswer:
    def __init__(
        self, fields: SpeechFields, options: TranscriptionOptions, model: ServedModel
    ) -> None:
        self.is_stream = bool(fields.stream)
        self.framing = SSE
        self._form: ResponseFormat = fields.response_format or "json"
        granularities = (
            fields.timestamp_granularities if isinstance(fields, TranscriptionRequest) else None
        ) or ["segment"]
        self._has_segments = "segment" in granularities
        self._has_words = "word" in granularities
        self._options = options
        self._model = model
        self._has_begun = False  # a part of the text was sent

    def chunks(self, event: TranscriptionEvent, sound_s: float) -> Sequence[object]:
        match event:
            case TextDelta():
                text = event.text if self._has_begun else event.text.lstrip()
                self._has_begun = self._has_begun or bool(text)
                logprobs = self._write_logprobs(event.logprobs)
                return [TextDeltaEvent(text, logprobs)] if text or event.logprobs else []
            case SegmentDone():
                if self._form != "verbose_json":
                    return []
                segment = event.segment
                return [write_segment_event(segment, sound_s, has_words=self._has_words)]
            case Transcription():
                return [self._write_done(event)]
            case unreachable:
                assert_never(unreachable)

    def whole(self, result: Transcription) -> WrittenAnswer:
        match self._form:
            case "json":
                logprobs = self._write_logprobs(result.logprobs)
                body = TranscriptionObject(result.text.strip(), write_usage(result.usage), logprobs)
                return WrittenAnswer(JSON, msgspec.json.encode(body))
            case "verbose_json":
                verbose = write_verbose(
                    result,
                    self._options.task,
                    has_segments=self._has_segments,
                    has_words=self._has_words,
                )
                return WrittenAnswer(JSON, msgspec.json.encode(verbose))
            case "text":
                return WrittenAnswer(TEXT, f"{result.text.strip()}\n".encode())
            case "srt":
                return WrittenAnswer(TEXT, write_srt(result.segments).encode())
            case "vtt":
                return WrittenAnswer(TEXT, write_vtt(result.segments).encode())
            case unreachable:
                assert_never(unreachable)

    def _write_done(self, result: Transcription) -> TextDoneEvent:
        done = TextDoneEvent(
            result.text.lstrip(),
            write_usage(result.usage),
            self._write_logprobs(result.logprobs),
        )
        if self._form == "verbose_json":
            done.task = self._options.task
            done.language = name_language(result.language, done.task)
            done.duration = round_time(result.duration_s)
        return done

    def _write_logprobs(
        self, positions: Sequence[PositionLogprobs]
    ) -> list[TopLogprob] | UnsetType:
        if self._options.num_logprobs is None:
            return UNSET
        return write_logprobs(positions, self._model, token_text(self._model, as_token_ids=False))
