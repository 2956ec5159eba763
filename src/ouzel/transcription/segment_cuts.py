"""Cuts the tokens of a window into segments at their timestamps, and finds the next window.

The rules come from openai-whisper's `transcribe.py`. A segment lies between two timestamps, so
two adjacent timestamps are the end of a segment and the begin of the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.checkpoint.speech_tokens import SpeechTokens
from ouzel.transcription.windows import FRAMES_PER_S

_TIMESTAMP_FRAMES = 2  # frames of 10 ms from one timestamp to the next
_TIMESTAMP_S = _TIMESTAMP_FRAMES / FRAMES_PER_S


@dataclass(frozen=True, slots=True)
class Cut:
    """The tokens [begin, end) of a segment, and its times since the begin of the window."""

    begin: int
    end: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class WindowCuts:
    cuts: tuple[Cut, ...]
    num_frames: int  # frames from the begin of the window to the begin of the next
    # the last segment ends with a single timestamp: nobody speaks after it
    ends_in_silence: bool


def cut_closed(token_ids: Sequence[int], tokens: SpeechTokens) -> list[Cut]:
    """Returns the segments that are followed by the begin of another segment."""
    ends = [
        place
        for place in range(1, len(token_ids))
        if tokens.is_timestamp(token_ids[place - 1]) and tokens.is_timestamp(token_ids[place])
    ]
    return _cut_at(ends, token_ids, tokens)


def cut_window(token_ids: Sequence[int], tokens: SpeechTokens, num_frames: int) -> WindowCuts:
    """Cuts the tokens of a window with `num_frames` frames of sound."""
    are_timestamps = [tokens.is_timestamp(token_id) for token_id in token_ids]
    ends_in_silence = are_timestamps[-2:] == [False, True]
    closed = cut_closed(token_ids, tokens)
    if not closed:
        end_s = _find_end(token_ids, tokens, num_frames)
        whole = Cut(0, len(token_ids), 0.0, end_s)
        return WindowCuts((whole,), num_frames, ends_in_silence)
    last = closed[-1]
    if ends_in_silence:
        closed += [
            Cut(
                last.end,
                len(token_ids),
                _count_steps(token_ids[last.end], tokens) * _TIMESTAMP_S,
                _count_steps(token_ids[-1], tokens) * _TIMESTAMP_S,
            )
        ]
        return WindowCuts(tuple(closed), num_frames, ends_in_silence)
    # The segment after these is not complete: the next window begins with it.
    num_steps = _count_steps(token_ids[last.end - 1], tokens)
    return WindowCuts(tuple(closed), num_steps * _TIMESTAMP_FRAMES, ends_in_silence)


def _cut_at(ends: list[int], token_ids: Sequence[int], tokens: SpeechTokens) -> list[Cut]:
    begins = [0, *ends[:-1]]
    return [
        Cut(
            begin,
            end,
            _count_steps(token_ids[begin], tokens) * _TIMESTAMP_S,
            _count_steps(token_ids[end - 1], tokens) * _TIMESTAMP_S,
        )
        for begin, end in zip(begins, ends, strict=False)
    ]


def _count_steps(timestamp: int, tokens: SpeechTokens) -> int:
    return max(timestamp - tokens.first_timestamp, 0)


def _find_end(token_ids: Sequence[int], tokens: SpeechTokens, num_frames: int) -> float:
    """Returns the end of the only segment: its last timestamp after 0.00, or the window's end."""
    last = next((each for each in reversed(token_ids) if tokens.is_timestamp(each)), None)
    if last is None or last == tokens.first_timestamp:
        return num_frames / FRAMES_PER_S
    return _count_steps(last, tokens) * _TIMESTAMP_S
