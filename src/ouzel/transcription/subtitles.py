"""Writes segments or words as subtitles: SubRip (`.srt`) and WebVTT (`.vtt`).

The output equals the files of openai-whisper's `utils.py`.
"""

from collections.abc import Iterable
from typing import Protocol


class TimedText(Protocol):
    """A text with its times: a segment or a word."""

    @property
    def start_s(self) -> float: ...

    @property
    def end_s(self) -> float: ...

    @property
    def text(self) -> str: ...


def write_srt(texts: Iterable[TimedText]) -> str:
    """Returns subtitles as SubRip, one for each text."""
    return "".join(
        f"{number}\n{_format_srt_time(each.start_s)} --> {_format_srt_time(each.end_s)}\n"
        f"{_clean(each.text)}\n\n"
        for number, each in enumerate(texts, start=1)
    )


def write_vtt(texts: Iterable[TimedText]) -> str:
    """Returns subtitles as WebVTT, one for each text."""
    cues = "".join(
        f"{_format_vtt_time(each.start_s)} --> {_format_vtt_time(each.end_s)}\n"
        f"{_clean(each.text)}\n\n"
        for each in texts
    )
    return f"WEBVTT\n\n{cues}"


def _clean(text: str) -> str:
    """Returns the text without the arrow that separates times."""
    return text.strip().replace("-->", "->")


def _format_srt_time(time_s: float) -> str:
    hours, rest = _split_hours(time_s)
    return f"{hours:02d}:{rest.replace('.', ',')}"


def _format_vtt_time(time_s: float) -> str:
    hours, rest = _split_hours(time_s)
    return f"{hours:02d}:{rest}" if hours else rest


def _split_hours(time_s: float) -> tuple[int, str]:
    """Returns the hours, and the rest as `minutes:seconds.milliseconds`."""
    seconds, milliseconds = divmod(round(time_s * 1000), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return hours, f"{minutes:02d}:{seconds:02d}.{milliseconds:03d}"
