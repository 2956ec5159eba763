"""Defines the events of a transcription: text while it is made, segments, and the whole result."""

from dataclasses import dataclass

from ouzel.types.step_output import PositionLogprobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    text: str  # begins with the space before it, as the tokens do
    start_s: float
    end_s: float
    probability: float  # mean probability of its tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    id: int
    seek: int  # first frame of its window, in frames of 10 ms
    start_s: float
    end_s: float
    text: str
    token_ids: tuple[int, ...]
    temperature: float  # the temperature with which its window was decoded at last
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionUsage:
    input_tokens: int  # tokens of prompts; each window of sound counts as its encoder frames
    audio_tokens: int
    text_tokens: int
    output_tokens: int
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """Text that is final: the joined deltas are the text of the transcription."""

    text: str
    logprobs: tuple[PositionLogprobs, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDone:
    segment: Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcription:
    """The last event."""

    text: str
    language: str  # code such as `en`
    duration_s: float
    segments: tuple[Segment, ...]
    usage: TranscriptionUsage
    logprobs: tuple[PositionLogprobs, ...] = ()


TranscriptionEvent = TextDelta | SegmentDone | Transcription
