"""Writes transcriptions in OpenAI's objects and events."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.checkpoint.speech_languages import LANGUAGE_NAMES
from ouzel.generation import ServedModel
from ouzel.transcription.events import Segment, Transcription, TranscriptionUsage, Word
from ouzel.transcription.options import SpeechTask
from ouzel.types.step_output import PositionLogprobs
from ouzel.wire.logprobs import LEAST_LOGPROB, TokenText, TopLogprob, sampled_logprob

_DIGITS = 3  # times are rounded to milliseconds


class InputTokenDetails(msgspec.Struct):
    text_tokens: int
    audio_tokens: int


class TokensUsage(msgspec.Struct, tag_field="type", tag="tokens"):
    input_tokens: int
    input_token_details: InputTokenDetails
    output_tokens: int
    total_tokens: int


class DurationUsage(msgspec.Struct, tag_field="type", tag="duration"):
    seconds: float


class TranscriptionObject(msgspec.Struct):
    text: str
    usage: TokensUsage
    logprobs: list[TopLogprob] | UnsetType = UNSET


class SegmentObject(msgspec.Struct):
    id: int
    seek: int  # first frame of its window, in frames of 10 ms
    start: float
    end: float
    text: str
    tokens: list[int]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float


class WordObject(msgspec.Struct):
    word: str
    start: float
    end: float


class VerboseTranscription(msgspec.Struct):
    task: SpeechTask
    language: str  # the English name
    duration: float
    text: str
    usage: DurationUsage
    segments: list[SegmentObject] | UnsetType = UNSET
    words: list[WordObject] | UnsetType = UNSET


class TextDeltaEvent(msgspec.Struct, tag_field="type", tag="transcript.text.delta"):
    delta: str
    logprobs: list[TopLogprob] | UnsetType = UNSET


class SegmentEvent(msgspec.Struct, tag_field="type", tag="transcript.text.segment"):
    """A segment in a stream with verbose_json, in the form of OpenAI's segments of speakers."""

    id: str
    start: float
    end: float
    text: str
    duration: float  # seconds of the whole sound
    seek: int
    tokens: list[int]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float
    words: list[WordObject] | UnsetType = UNSET


class TextDoneEvent(msgspec.Struct, tag_field="type", tag="transcript.text.done"):
    text: str
    usage: TokensUsage
    logprobs: list[TopLogprob] | UnsetType = UNSET
    task: SpeechTask | UnsetType = UNSET  # this and the rest: with verbose_json
    language: str | UnsetType = UNSET
    duration: float | UnsetType = UNSET


def write_usage(usage: TranscriptionUsage) -> TokensUsage:
    return TokensUsage(
        input_tokens=usage.input_tokens,
        input_token_details=InputTokenDetails(usage.text_tokens, usage.audio_tokens),
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
    )


def write_verbose(
    result: Transcription, task: SpeechTask, *, has_segments: bool, has_words: bool
) -> VerboseTranscription:
    duration_s = round_time(result.duration_s)
    return VerboseTranscription(
        task=task,
        language=name_language(result.language, task),
        duration=duration_s,
        text=result.text.strip(),
        usage=DurationUsage(duration_s),
        segments=[_write_segment(each) for each in result.segments] if has_segments else UNSET,
        words=write_words(result.segments) if has_words else UNSET,
    )


def write_segment_event(segment: Segment, sound_s: float, *, has_words: bool) -> SegmentEvent:
    """`sound_s` is the length of the whole sound: it shows how far the transcription is."""
    written = _write_segment(segment)
    return SegmentEvent(
        id=str(written.id),
        start=written.start,
        end=written.end,
        text=written.text,
        duration=round_time(sound_s),
        seek=written.seek,
        tokens=written.tokens,
        temperature=written.temperature,
        avg_logprob=written.avg_logprob,
        compression_ratio=written.compression_ratio,
        no_speech_prob=written.no_speech_prob,
        words=write_words([segment]) if has_words else UNSET,
    )


def write_words(segments: Iterable[Segment]) -> list[WordObject]:
    return [_write_word(word) for segment in segments for word in segment.words]


def write_logprobs(
    positions: Sequence[PositionLogprobs], model: ServedModel, text_of: TokenText
) -> list[TopLogprob]:
    return [sampled_logprob(position, model, text_of) for position in positions]


def name_language(code: str, task: SpeechTask) -> str:
    """Returns the English name of a text's language in lower case.

    A code without a name is its own name.
    """
    if task == "translate":
        return "english"
    return LANGUAGE_NAMES.get(code, code).lower()


def round_time(seconds: float) -> float:
    return round(seconds, _DIGITS)


def _write_segment(segment: Segment) -> SegmentObject:
    return SegmentObject(
        id=segment.id,
        seek=segment.seek,
        start=round_time(segment.start_s),
        end=round_time(segment.end_s),
        text=segment.text,
        tokens=list(segment.token_ids),
        temperature=segment.temperature,
        avg_logprob=max(segment.avg_logprob, LEAST_LOGPROB),
        compression_ratio=segment.compression_ratio,
        no_speech_prob=segment.no_speech_prob,
    )


def _write_word(word: Word) -> WordObject:
    return WordObject(word.text.strip(), round_time(word.start_s), round_time(word.end_s))
