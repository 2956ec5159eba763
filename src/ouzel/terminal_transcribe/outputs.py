"""Writes transcripts in the forms of the API's answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.terminal_transcribe.flags import OutputFormat
from ouzel.terminal_transcribe.transcript import Transcript
from ouzel.transcription.options import SpeechTask
from ouzel.transcription.subtitles import write_srt, write_vtt
from ouzel.wire.transcription_objects import (
    DurationUsage,
    SegmentEvent,
    SegmentObject,
    TokensUsage,
    WordObject,
)

ENDINGS: Mapping[OutputFormat, str] = {
    "text": ".txt",
    "srt": ".srt",
    "vtt": ".vtt",
    "json": ".json",
    "verbose_json": ".json",
}


@dataclass(frozen=True, slots=True)
class _Subtitle:
    start_s: float
    end_s: float
    text: str


class _Short(msgspec.Struct):
    """The answer of the API with json, behind the name of the file."""

    file: str
    text: str
    usage: TokensUsage


class _Verbose(msgspec.Struct):
    """The answer of the API with verbose_json, behind the name of the file."""

    file: str
    task: SpeechTask | UnsetType
    language: str | UnsetType
    duration: float
    text: str
    usage: DurationUsage
    segments: list[SegmentObject]
    words: list[WordObject] | UnsetType


def write_output(
    transcript: Transcript, output_format: OutputFormat, file: str, *, has_words: bool
) -> str:
    """Returns the content of an output; JSON is one line. `file` is the name of the sound file."""
    text = transcript.done.text.strip()
    match output_format:
        case "text":
            return f"{text}\n"
        case "srt":
            return write_srt(_list_subtitles(transcript.segments, has_words=has_words))
        case "vtt":
            return write_vtt(_list_subtitles(transcript.segments, has_words=has_words))
        case "json":
            return _write_json(_Short(file, text, transcript.done.usage))
        case "verbose_json":
            return _write_json(_make_verbose(transcript, file, text, has_words=has_words))
        case unreachable:
            assert_never(unreachable)


def _list_subtitles(segments: Sequence[SegmentEvent], *, has_words: bool) -> Iterator[_Subtitle]:
    """Yields a subtitle for each segment, or for each word; a segment without words is one."""
    for segment in segments:
        if has_words and segment.words:
            for word in segment.words:
                yield _Subtitle(word.start, word.end, word.word)
        else:
            yield _Subtitle(segment.start, segment.end, segment.text)


def _make_verbose(transcript: Transcript, file: str, text: str, *, has_words: bool) -> _Verbose:
    words = [word for segment in transcript.segments for word in segment.words or ()]
    return _Verbose(
        file=file,
        task=transcript.done.task,
        language=transcript.done.language,
        duration=transcript.duration_s,
        text=text,
        usage=DurationUsage(transcript.duration_s),
        segments=[_make_segment(*numbered) for numbered in enumerate(transcript.segments)],
        words=words if has_words else UNSET,
    )


def _make_segment(number: int, event: SegmentEvent) -> SegmentObject:
    return SegmentObject(
        id=number,
        seek=event.seek,
        start=event.start,
        end=event.end,
        text=event.text,
        tokens=event.tokens,
        temperature=event.temperature,
        avg_logprob=event.avg_logprob,
        compression_ratio=event.compression_ratio,
        no_speech_prob=event.no_speech_prob,
    )


def _write_json(content: object) -> str:
    return f"{msgspec.json.encode(content).decode()}\n"
