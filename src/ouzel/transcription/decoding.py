"""Judges the tokens of one window: their likelihood, their repetitions, the chance of no speech.

The formulas and thresholds come from openai-whisper (`decoding.py`, `transcribe.py`, `utils.py`).
As there, the log probabilities are of the tokens that the rules of a transcript allow.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.types.step_output import PositionLogprobs

_MAX_COMPRESSION_RATIO = 2.4  # a text that repeats itself has a larger one
_MIN_AVG_LOGPROB = -1.0
_MAX_NO_SPEECH_PROB = 0.6
_TEMPERATURE_STEP = 0.2
_MAX_TEMPERATURE = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """The tokens of a window, decoded once."""

    token_ids: tuple[int, ...]  # the end token is not among them
    logprobs: tuple[PositionLogprobs, ...]  # one for each token
    temperature: float
    avg_logprob: float
    compression_ratio: float


def mean_logprob(logprobs: tuple[PositionLogprobs, ...], num_tokens: int) -> float:
    """Returns the mean log probability of a window's tokens and its end token.

    `num_tokens` does not count the end token, which may be missing.
    """
    return sum(each.sampled.logprob for each in logprobs) / (num_tokens + 1)


def compute_compression_ratio(text: str) -> float:
    content = text.encode()
    return len(content) / len(zlib.compress(content))


def is_silence(decoding: Decoding, no_speech_prob: float) -> bool:
    """Tells whether the window is skipped: it has no speech, and its text is unlikely."""
    return is_probably_silence(no_speech_prob) and decoding.avg_logprob <= _MIN_AVG_LOGPROB


def is_probably_silence(no_speech_prob: float) -> bool:
    return no_speech_prob > _MAX_NO_SPEECH_PROB


def needs_fallback(decoding: Decoding, no_speech_prob: float) -> bool:
    """Tells whether a window is to be decoded again, with a higher temperature."""
    is_unlikely = decoding.avg_logprob < _MIN_AVG_LOGPROB
    if is_unlikely and is_probably_silence(no_speech_prob):
        return False
    return is_unlikely or decoding.compression_ratio > _MAX_COMPRESSION_RATIO


def choose_likeliest(failed: Sequence[Decoding]) -> Decoding:
    """Returns the best of decodings that all failed: the likeliest that repeats itself little.

    openai-whisper takes the last one, of the highest temperature; faster-whisper does as here.
    """
    varied = [each for each in failed if each.compression_ratio <= _MAX_COMPRESSION_RATIO]
    return max(varied or failed, key=lambda each: each.avg_logprob)


def list_temperatures(first: float, *, falls_back: bool) -> list[float]:
    """Returns the temperatures with which a window is decoded until one succeeds."""
    temperatures = [first]
    while falls_back and (following := round(temperatures[-1] + _TEMPERATURE_STEP, 6)) <= (
        _MAX_TEMPERATURE
    ):
        temperatures.append(following)
    return temperatures
