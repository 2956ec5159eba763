"""Hostile sound files become short sounds or refusals, and cost little time, memory and disk."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from ouzel.audio import errors
from ouzel.audio.decoder import AudioDecoder
from ouzel.config import AudioConfig
from ouzel.errors import EngineUnavailable
from tests.audio.files import encode, make_chunk, make_film, make_mp3, make_wav
from tests.audio.signals import make_tone

CONFIG = AudioConfig(max_audio_seconds=60, max_audio_file_bytes=8 * 2**20)
SECOND = bytes(32_000)


@pytest.fixture(scope="module")
def decoder() -> Iterator[AudioDecoder]:
    """One decoder for all tests: its process starts once, and no test waits for another."""
    decoder = AudioDecoder(CONFIG)
    yield decoder
    decoder.close()


async def measure(decoder: AudioDecoder, data: bytes) -> int:
    """Returns the number of samples of a file."""
    with await decoder.decode(data) as sound:
        return sound.num_samples


HEADERS_THAT_LIE: dict[str, tuple[bytes, int]] = {  # and the number of samples
    "data longer than the file": (make_wav(SECOND, data_size=2**30), 16_000),
    "data of unknown size": (make_wav(SECOND, data_size=0xFFFFFFFF, riff_size=0xFFFFFFFF), 16_000),
    "data without a size, from a pipe": (make_wav(SECOND, data_size=0, riff_size=0), 16_000),
    "a RIFF longer than the file": (make_wav(SECOND, riff_size=2**31), 16_000),
    "a RIFF shorter than the file": (make_wav(SECOND, riff_size=4), 16_000),
    "bytes of a frame that do not fit": (make_wav(SECOND, frame_bytes=7), 16_000),
    "bytes of a frame that are many": (make_wav(SECOND, frame_bytes=60_000), 16_000),
    "no bytes of a frame": (make_wav(SECOND, frame_bytes=0), 16_000),
    "a file over 4 GiB": (b"RF64" + make_wav(SECOND, data_size=0xFFFFFFFF)[4:], 16_000),
    "half a sample at the end": (make_wav(SECOND + b"x"), 16_000),
}


@pytest.mark.parametrize("name", HEADERS_THAT_LIE)
async def test_a_lie_about_a_size_does_not_matter(decoder: AudioDecoder, name: str) -> None:
    data, num_samples = HEADERS_THAT_LIE[name]

    assert await measure(decoder, data) == num_samples


REFUSED_WAVS: dict[str, tuple[bytes, type[errors.InvalidAudio], str]] = {
    "no channels": (make_wav(SECOND, channels=0), errors.DamagedAudio, "with 0 channels"),
    "no rate": (make_wav(SECOND, rate=0), errors.UnknownAudioFormat, "given 0$"),
    "a low rate": (make_wav(SECOND, rate=1), errors.UnknownAudioFormat, "given 1$"),
    "a rate of 4 GHz": (
        make_wav(SECOND, rate=4_000_000_000),
        errors.UnknownAudioFormat,
        "^file must have 1000 to 1000000 samples a second, given 4000000000$",
    ),
    "no bits": (make_wav(SECOND, bits=0), errors.UnknownAudioFormat, "given 0$"),
    "many bits": (make_wav(SECOND, bits=65_535), errors.UnknownAudioFormat, "given 65535$"),
    "another encoding": (
        make_wav(SECOND, tag=0x55),
        errors.UnknownAudioFormat,
        "given the format tag 0x0055$",
    ),
    "an unknown extension": (
        make_wav(SECOND, tag=0xFFFE, extension=bytes(24)),
        errors.UnknownAudioFormat,
        "given the format tag 0xfffe$",
    ),
    "no samples": (make_wav(b""), errors.EmptyAudio, "given a file without samples$"),
    "no chunks": (make_chunk(b"RIFF", b"WAVE"), errors.DamagedAudio, "no data chunk"),
    "no format": (
        make_chunk(b"RIFF", b"WAVE" + make_chunk(b"data", SECOND)),
        errors.DamagedAudio,
        "no fmt chunk",
    ),
    "a short format": (
        make_chunk(b"RIFF", b"WAVE" + make_chunk(b"fmt ", b"\1\0\1\0")),
        errors.DamagedAudio,
        "short fmt chunk",
    ),
    "empty chunks only": (
        make_chunk(b"RIFF", b"WAVE" + make_chunk(b"JUNK", b"") * 20_000),
        errors.DamagedAudio,
        "more than 10000 chunks",
    ),
    "a frame longer than the file": (
        make_wav(SECOND, channels=65_535),
        errors.EmptyAudio,
        "without samples",
    ),
}


@pytest.mark.parametrize("name", REFUSED_WAVS)
async def test_a_wav_file_without_sense_is_refused(decoder: AudioDecoder, name: str) -> None:
    data, error, message = REFUSED_WAVS[name]

    with pytest.raises(error, match=message):
        await decoder.decode(data)


@pytest.mark.parametrize("length", [1, 4, 11, 12, 19, 20, 30, 43])
async def test_a_wav_file_that_ends_in_its_header_is_refused(
    decoder: AudioDecoder, length: int
) -> None:
    with pytest.raises(errors.InvalidAudio):
        await decoder.decode(make_wav(SECOND)[:length])


async def test_no_bytes_are_no_sound(decoder: AudioDecoder) -> None:
    with pytest.raises(errors.EmptyAudio, match=r"^file must have .+, given a file of 0 bytes$"):
        await decoder.decode(b"")


async def test_bytes_of_no_format_are_refused(decoder: AudioDecoder) -> None:
    with pytest.raises(errors.UnknownAudioFormat, match=r"WAV, MP3, .+ begin with 89 50 4e 47 0d"):
        await decoder.decode(b"\x89PNG\r\n\x1a\n" + bytes(1000))


MAGICS = {
    "MP3": b"\xff\xfb\x90\x64",
    "ID3": b"ID3\x04\0\0\0\0\0\x20",
    "AAC": b"\xff\xf1\x50\x80",
    "Ogg": b"OggS\0\x02",
    "FLAC": b"fLaC\0\0\0\x22",
    "Matroska": b"\x1aE\xdf\xa3",
    "MP4": b"\0\0\0\x20ftypM4A ",
    "MPEG": b"\0\0\x01\xba",
    "AIFF": b"FORM\0\0\1\0AIFF",
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MAGICS)
async def test_random_bytes_end_in_a_refusal_or_a_short_sound(
    decoder: AudioDecoder, name: str, seed: int
) -> None:
    noise = np.random.Generator(np.random.PCG64(seed)).bytes(50_000)

    try:
        assert await measure(decoder, MAGICS[name] + noise) <= 60 * 16_000
    except errors.InvalidAudio as error:
        assert error.param == "file"


WHOLE_FILES: dict[str, Callable[[], bytes]] = {
    "MP3": lambda: make_mp3(2),
    "FLAC": lambda: encode(make_tone(1000, 2, 44_100), "flac", "flac", 44_100),
    "AAC": lambda: encode(make_tone(1000, 2, 44_100), "adts", "aac", 44_100),
    "WebM": lambda: encode(make_tone(1000, 2, 48_000), "webm", "libopus", 48_000),
    "Opus": lambda: encode(make_tone(1000, 20, 48_000), "ogg", "libopus", 48_000),
}


@pytest.mark.parametrize("name", WHOLE_FILES)
async def test_of_a_file_that_is_cut_off_the_beginning_is_read(
    decoder: AudioDecoder, name: str
) -> None:
    data = WHOLE_FILES[name]()

    num_samples = await measure(decoder, data)
    num_read = await measure(decoder, data[: len(data) // 2])

    assert num_samples / 4 < num_read < num_samples * 3 / 4


@pytest.mark.parametrize("name", WHOLE_FILES)
async def test_a_damaged_place_is_skipped(decoder: AudioDecoder, name: str) -> None:
    data = bytearray(WHOLE_FILES[name]())
    middle = len(data) // 2
    data[middle : middle + 100] = np.random.Generator(np.random.PCG64(1)).bytes(100)

    assert await measure(decoder, bytes(data)) > 8000


async def test_an_m4a_without_its_table_is_refused(decoder: AudioDecoder) -> None:
    """The table of an M4A is at its end."""
    data = encode(make_tone(1000, 2, 44_100), "ipod", "aac", 44_100)

    with pytest.raises(errors.DamagedAudio, match=r"given a file that is cut off or broken$"):
        await decoder.decode(data[: len(data) // 2])


@pytest.mark.parametrize("num_streams", [1, 40, 900])
async def test_a_film_without_sound_is_refused(decoder: AudioDecoder, num_streams: int) -> None:
    with pytest.raises(errors.NoAudioStream, match=r"given a file without an audio stream$"):
        await decoder.decode(make_film(num_streams=num_streams))


async def test_an_unknown_codec_is_refused(decoder: AudioDecoder) -> None:
    webm = encode(make_tone(1000, 1, 48_000), "webm", "libopus", 48_000)

    with pytest.raises(errors.UnknownAudioFormat, match=r"PCM, given an unknown codec$"):
        await decoder.decode(webm.replace(b"A_OPUS", b"A_OTHR"))


async def test_a_codec_that_is_not_decoded_is_refused(decoder: AudioDecoder) -> None:
    """FFmpeg has a decoder, but the server trusts few of them."""
    film = encode(make_tone(1000, 1, 48_000), "matroska", "ac3", 48_000)

    with pytest.raises(errors.UnknownAudioFormat, match=r"aac, alac, .+ PCM, given ac3$"):
        await decoder.decode(film)


async def test_too_many_bytes_are_refused(decoder: AudioDecoder) -> None:
    with pytest.raises(
        errors.AudioTooLarge,
        match=r"^file must have <= 8388608 bytes \(max_audio_file_bytes\), given 8388609$",
    ):
        await decoder.decode(make_wav(bytes(2**23 - 44)) + b"x")


TOO_LONG: dict[str, Callable[[], bytes]] = {
    "WAV": lambda: make_wav(bytes(61 * 32_000)),
    "WAV of a low rate": lambda: make_wav(bytes(2**22), rate=1000),
    "FLAC": lambda: encode(np.zeros(61 * 8000, np.float32), "flac", "flac", 8000),
    "MP3": lambda: make_mp3(2) * 31,
}


@pytest.mark.parametrize("name", TOO_LONG)
async def test_a_long_sound_is_refused(decoder: AudioDecoder, name: str) -> None:
    with pytest.raises(
        errors.AudioTooLong,
        match=r"^file must last <= 60 s \(max_audio_seconds\), given a longer sound$",
    ):
        await decoder.decode(TOO_LONG[name]())


async def test_a_sound_of_the_longest_time_is_read(decoder: AudioDecoder) -> None:
    assert await measure(decoder, make_wav(bytes(60 * 32_000))) == 60 * 16_000


async def test_silence_that_is_compressed_to_nothing_stops_at_the_limit(
    decoder: AudioDecoder,
) -> None:
    """A megabyte of FLAC has a day of silence."""
    frames = encode(np.zeros(8000 * 50, np.float32), "flac", "flac", 8000, layout="mono")
    begin = frames.index(b"\xff\xf8")
    bomb = frames + frames[begin:] * (2**20 // len(frames[begin:]))

    with pytest.raises(errors.AudioTooLong):
        await decoder.decode(bomb)


async def test_a_file_of_another_format_with_a_low_rate_is_refused(decoder: AudioDecoder) -> None:
    """FFmpeg's resampler would make hours of sound from one frame."""
    with pytest.raises(errors.UnknownAudioFormat, match=r"samples a second, given 10$"):
        await decoder.decode(encode(np.zeros(20, np.float32), "aiff", "pcm_s16be", 10))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"audio_timeout_s": 0.05}, r"^file must be decoded in <= 0\.05 s \(audio_timeout_s\)"),
        (
            {"max_audio_memory_bytes": 16 * 2**20},
            r"^file must be decoded in <= 16777216 bytes of memory \(max_audio_memory_bytes\)",
        ),
    ],
)
async def test_a_file_that_costs_too_much_is_refused(
    limits: dict[str, float], message: str
) -> None:
    decoder = AudioDecoder(AudioConfig(**limits))  # type: ignore[arg-type]
    try:
        with pytest.raises(errors.AudioTooExpensive, match=message):
            await decoder.decode(make_wav(bytes(2**20), rate=999_983))  # it needs a long filter
    finally:
        decoder.close()


async def test_no_file_remains(
    decoder: AudioDecoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with await decoder.decode(make_wav(SECOND)) as sound:
        assert os.listdir(tmp_path) == []
        assert sound.num_samples == 16_000
    with pytest.raises(errors.InvalidAudio):
        await decoder.decode(make_film())

    assert os.listdir(tmp_path) == []


async def test_a_server_without_a_place_for_files_says_so(
    decoder: AudioDecoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))

    with pytest.raises(EngineUnavailable, match="sound files cannot be read now"):
        await decoder.decode(make_wav(SECOND))
