"""Writes the segments of a transcription as subtitles: SubRip (SRT) and WebVTT."""

from collections.abc import Iterable

from ouzel.transcription.events import Segment


def write_srt(segments: Iterable[Segment]) -> str:
    return "".join(
        f"{number}\n{_write_times(segment, ',')}\n{_write_text(segment)}\n\n"
        for number, segment in enumerate(segments, 1)
    )


def write_vtt(segments: Iterable[Segment]) -> str:
    cues = (f"{_write_times(segment, '.')}\n{_write_text(segment)}\n\n" for segment in segments)
    return "WEBVTT\n\n" + "".join(cues)


def _write_times(segment: Segment, point: str) -> str:
    return f"{_write_time(segment.start_s, point)} --> {_write_time(segment.end_s, point)}"


def _write_time(seconds: float, point: str) -> str:
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    minutes, whole = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{whole:02}{point}{milliseconds:03}"


def _write_text(segment: Segment) -> str:
    """Returns the text without marks that would end the cue: an arrow, and empty lines."""
    lines = (line for line in segment.text.strip().splitlines() if line.strip())
    return "\n".join(lines).replace("-->", "->")
