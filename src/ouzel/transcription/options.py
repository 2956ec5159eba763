"""Defines the options of a transcription, after defaults were filled in."""

from dataclasses import dataclass
from typing import Literal

SpeechTask = Literal["transcribe", "translate"]
# one window after the other, with the text before it; or windows between pauses, several at a time
Chunking = Literal["sequential", "vad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceDetection:
    """The parameters of voice activity detection, as OpenAI's `server_vad` has them."""

    threshold: float = 0.5  # a frame with at least this probability is speech
    prefix_padding_ms: int = 300  # kept before speech
    silence_duration_ms: int = 200  # a pause this long may end a chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionOptions:
    task: SpeechTask = "transcribe"  # translate: the text is English
    language: str | None = None  # code such as `en`; None: the model detects it
    prompt: str = ""  # text before the first window: names, spelling, style
    temperature: float = 0.0  # 0: greedy, with higher ones when a window fails
    falls_back: bool = True  # a window that fails is decoded again with higher temperatures
    seed: int | None = None
    has_timestamps: bool = True  # the model writes timestamps, so that there are segments
    has_words: bool = False  # the times of words are computed
    num_logprobs: int | None = None  # logprobs of each token of the text; None: none
    chunking: Chunking = "sequential"
    detection: VoiceDetection = VoiceDetection()
    beam_size: int = 1
    priority: int = 0
