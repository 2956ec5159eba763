"""Writes the segments of a transcription as subtitles: SubRip (SRT) and WebVTT."""

from collections.abc import Iterable

from ouzel.transcription.events import Segment


def write_srt(segments: Iterable[Segment]) -> str:
    return "".join(
        f"{number}\n{_write_times(segment, is_srt=True)}\n{_write_text(segment)}\n\n"
        for number, segment in enumerate(segments, 1)
    )


def write_vtt(segments: Iterable[Segment]) -> str:
    cues = (
        f"{_write_times(segment, is_srt=False)}\n{_write_text(segment)}\n\n" for segment in segments
    )
    return "WEBVTT\n\n" + "".join(cues)


def _write_times(segment: Segment, *, is_srt: bool) -> str:
    begin, end = (_write_time(time, is_srt=is_srt) for time in (segment.start_s, segment.end_s))
    return f"{begin} --> {end}"


def _write_time(seconds: float, *, is_srt: bool) -> str:
    """Writes a time; WebVTT leaves out zero hours, as openai-whisper does."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    minutes, whole = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    rest = f"{minutes:02}:{whole:02}{',' if is_srt else '.'}{milliseconds:03}"
    return f"{hours:02}:{rest}" if is_srt or hours else rest


def _write_text(segment: Segment) -> str:
    """Returns the text without marks that would end the cue: an arrow, and empty lines."""
    lines = (line for line in segment.text.strip().splitlines() if line.strip())
    return "\n".join(lines).replace("-->", "->")
