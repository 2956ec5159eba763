"""Subtitles have the formats of openai-whisper's files."""

from dataclasses import replace

from ouzel.transcription import Segment, Word, write_srt, write_vtt

FIRST = Segment(
    id=0,
    seek=0,
    start_s=0.0,
    end_s=2.5,
    text=" Hello --> you. ",
    token_ids=(),
    temperature=0.0,
    avg_logprob=0.0,
    compression_ratio=1.0,
    no_speech_prob=0.0,
)
SECOND = replace(FIRST, start_s=3599.9996, end_s=3725.04, text=" Bye.")
WORDS = (
    Word(text=" Good", start_s=1.0, end_s=1.5, probability=1.0),
    Word(text=" bye.", start_s=1.5, end_s=2.0, probability=1.0),
)


def test_srt_has_numbers_and_hours() -> None:
    assert write_srt([FIRST, SECOND]) == (
        "1\n00:00:00,000 --> 00:00:02,500\nHello -> you.\n\n"
        "2\n01:00:00,000 --> 01:02:05,040\nBye.\n\n"
    )


def test_vtt_has_hours_only_if_there_are_any() -> None:
    assert write_vtt([FIRST, SECOND]) == (
        "WEBVTT\n\n"
        "00:00.000 --> 00:02.500\nHello -> you.\n\n"
        "01:00:00.000 --> 01:02:05.040\nBye.\n\n"
    )


def test_without_segments_there_are_no_subtitles() -> None:
    assert write_srt([]) == ""
    assert write_vtt([]) == "WEBVTT\n\n"


def test_each_word_can_have_a_subtitle() -> None:
    assert write_srt(WORDS) == (
        "1\n00:00:01,000 --> 00:00:01,500\nGood\n\n2\n00:00:01,500 --> 00:00:02,000\nbye.\n\n"
    )
