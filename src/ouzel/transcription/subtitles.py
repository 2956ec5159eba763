"""Writes segments as subtitles: SubRip (`.srt`) and WebVTT (`.vtt`).

The output equals the files of openai-whisper's `utils.py`.
"""

from collections.abc import Iterator, Sequence

from ouzel.transcription.events import Segment

_Cue = tuple[float, float, str]


def write_srt(segments: Sequence[Segment], *, per_word: bool = False) -> str:
    """Returns subtitles as SubRip; with `per_word`, each word has a subtitle of its own."""
    cues = enumerate(_list_cues(segments, per_word=per_word), start=1)
    return "".join(
        f"{number}\n{_format_srt_time(start_s)} --> {_format_srt_time(end_s)}\n{text}\n\n"
        for number, (start_s, end_s, text) in cues
    )


def write_vtt(segments: Sequence[Segment], *, per_word: bool = False) -> str:
    """Returns subtitles as WebVTT; with `per_word`, each word has a subtitle of its own."""
    cues = "".join(
        f"{_format_vtt_time(start_s)} --> {_format_vtt_time(end_s)}\n{text}\n\n"
        for start_s, end_s, text in _list_cues(segments, per_word=per_word)
    )
    return f"WEBVTT\n\n{cues}"


def _list_cues(segments: Sequence[Segment], *, per_word: bool) -> Iterator[_Cue]:
    for segment in segments:
        if per_word and segment.words:
            for word in segment.words:
                yield word.start_s, word.end_s, _clean(word.text)
        else:
            yield segment.start_s, segment.end_s, _clean(segment.text)


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
