"""Writers give sound files that FFmpeg decodes, block after block."""

import subprocess
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.audio.writing.formats import FileFormat, SpeechFormat
from ouzel.audio.writing.wav_writer import fill_sizes
from ouzel.audio.writing.writer import make_writer
from tests.audio.signals import make_tone
from tests.audio.writing.decoding import (
    DEMUXERS,
    RATE,
    decode_file,
    find_frequencies,
    write_blocks,
)

FORMATS: list[FileFormat] = [*get_args(SpeechFormat), "wav_float"]
EXACT: list[FileFormat] = ["wav", "wav_float", "pcm", "flac"]
ENCODED: list[FileFormat] = ["mp3", "opus", "aac", "flac"]
TONES = (440.0, 880.0, 1320.0)
MOST_HELD_BACK_S = 0.2


def make_sentences() -> list[NDArray[np.float32]]:
    return [make_tone(tone, 1.0, RATE) for tone in TONES]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_file_has_the_sound_of_all_blocks(format_: FileFormat) -> None:
    file = b"".join(write_blocks(make_writer(format_, RATE), make_sentences()))
    samples = decode_file(file, format_)
    assert len(samples) / RATE == pytest.approx(3.0, abs=0.12)
    found = find_frequencies(samples, [0.2, 0.8])
    found += find_frequencies(samples, [1.2, 1.8]) + find_frequencies(samples, [2.2, 2.8])
    assert found == pytest.approx(TONES, abs=3)
    assert np.abs(samples).max() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("format_", EXACT)
def test_a_format_without_loss_keeps_each_sample(format_: FileFormat) -> None:
    sentences = make_sentences()
    samples = decode_file(b"".join(write_blocks(make_writer(format_, RATE), sentences)), format_)
    assert len(samples) == 3 * RATE
    assert np.abs(samples - np.concatenate(sentences)).max() <= 1 / 32768


@pytest.mark.parametrize("format_", FORMATS)
def test_a_block_can_be_played_before_the_next_one_is_made(format_: FileFormat) -> None:
    writer = make_writer(format_, RATE)
    first = writer.write(make_sentences()[0])
    samples = decode_file(first, format_)
    writer.close()
    assert 1.0 - MOST_HELD_BACK_S < len(samples) / RATE <= 1.01
    assert find_frequencies(samples, [0.1, 0.7]) == pytest.approx([440], abs=3)


@pytest.mark.parametrize("format_", FORMATS)
def test_tiny_blocks_make_the_same_sound(format_: FileFormat) -> None:
    whole = np.concatenate(make_sentences())[: RATE // 4]
    tiny = np.split(whole, range(7, len(whole), 7))
    at_once = write_blocks(make_writer(format_, RATE), [whole])
    in_pieces = write_blocks(make_writer(format_, RATE), tiny)
    assert np.array_equal(
        decode_file(b"".join(in_pieces), format_), decode_file(b"".join(at_once), format_)
    )


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("has_block", [False, True])
def test_a_file_without_samples_is_silent(format_: FileFormat, has_block: bool) -> None:
    blocks = [np.empty(0, np.float32)] if has_block else []
    writer = make_writer(format_, RATE)
    file = b"".join(write_blocks(writer, blocks))
    writer.close()
    if format_ == "pcm":
        assert not file
    elif format_ in ("wav", "wav_float"):
        assert (len(file), file[36:40]) == (44, b"data")
        assert len(decode_file(file, format_)) == 0
    else:  # players refuse files without a frame
        samples = decode_file(file, format_)
        assert 0 < len(samples) / RATE < 0.2
        assert not samples.any()


@pytest.mark.parametrize("format_", FORMATS)
def test_loud_samples_are_clipped(format_: FileFormat) -> None:
    loud = 4 * make_tone(440, 1.0, RATE)
    loud[100] = np.nan
    samples = decode_file(b"".join(write_blocks(make_writer(format_, RATE), [loud])), format_)
    # The encoders with loss overshoot at the corners of a clipped wave.
    assert np.abs(samples).max() == pytest.approx(1.0, abs=0.25)
    expected = np.nan_to_num(np.clip(loud, -1, 1))
    error = samples[: len(loud)] - expected[: len(samples)]
    # wrapped samples would differ by two
    if format_ in EXACT:
        assert np.abs(error).max() <= 1 / 16384


@pytest.mark.parametrize("format_", FORMATS)
def test_a_writer_can_be_closed_early_and_again(format_: FileFormat) -> None:
    writer = make_writer(format_, RATE)
    writer.write(make_sentences()[0])
    writer.close()
    writer.close()
    unused = make_writer(format_, RATE)
    unused.close()


@pytest.mark.parametrize("format_", ENCODED)
def test_any_rate_is_resampled_for_the_codec(format_: FileFormat) -> None:
    rate = 22_222
    blocks = [make_tone(440, 0.5, rate), make_tone(440, 0.5, rate)]
    samples = decode_file(b"".join(write_blocks(make_writer(format_, rate), blocks)), format_)
    assert len(samples) / RATE == pytest.approx(1.0, abs=0.12)
    assert find_frequencies(samples, [0.2, 0.8]) == pytest.approx([440], abs=3)


@pytest.mark.parametrize("format_", ["wav", "wav_float"])
def test_a_whole_wav_file_has_true_sizes(format_: FileFormat) -> None:
    pieces = write_blocks(make_writer(format_, RATE), make_sentences())
    streamed = b"".join(pieces)
    assert streamed[4:8] == streamed[40:44] == b"\xff" * 4
    first = bytearray(pieces[0])
    fill_sizes(first, len(streamed))
    file = bytes(first) + b"".join(pieces[1:])
    assert int.from_bytes(file[4:8], "little") == len(file) - 8
    assert int.from_bytes(file[40:44], "little") == len(file) - 44
    assert np.array_equal(decode_file(file, format_), decode_file(streamed, format_))
    assert int.from_bytes(file[20:22], "little") == (3 if format_ == "wav_float" else 1)


@pytest.mark.parametrize("format_", FORMATS)
def test_the_program_ffmpeg_plays_a_stream(format_: FileFormat, tmp_path: Path) -> None:
    file = tmp_path / "speech"
    file.write_bytes(b"".join(write_blocks(make_writer(format_, RATE), make_sentences())))
    raw = ["-ar", str(RATE), "-ac", "1"] if format_ == "pcm" else []
    command = ["ffmpeg", "-v", "error", "-f", DEMUXERS[format_], *raw, "-i", "-"]
    command += ["-f", "s16le", "-ar", str(RATE), "-"]
    with file.open("rb") as stream:
        played = subprocess.run(command, stdin=stream, capture_output=True, check=True)
    assert not played.stderr
    assert len(played.stdout) / 2 / RATE == pytest.approx(3.0, abs=0.12)
