"""Sound files of many formats become mono samples at 16 kHz."""

import asyncio
from collections.abc import Callable, Iterator
from queue import Queue
from threading import Event
from typing import IO

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.audio import decoder as decoder_module
from ouzel.audio.decoder import AudioDecoder
from ouzel.audio.errors import AudioExtraMissing, InvalidAudio
from ouzel.audio.sound import Sound
from ouzel.config import AudioConfig
from tests.audio.files import (
    A_LAW,
    EXTENSIBLE,
    FLOAT,
    MU_LAW,
    PCM,
    encode,
    encode_samples,
    extend,
    make_chunk,
    make_mp3,
    make_wav,
)
from tests.audio.signals import make_tone

TONE = make_tone(1000, 1)


@pytest.fixture(scope="module")
def decoder() -> Iterator[AudioDecoder]:
    """One decoder for all tests: its process starts once, and no test waits for another."""
    decoder = AudioDecoder(AudioConfig())
    yield decoder
    decoder.close()


async def read(decoder: AudioDecoder, data: bytes) -> NDArray[np.float32]:
    with await decoder.decode(data) as sound:
        return sound.samples(0, sound.num_samples)


WAV_KINDS = {  # a format tag, and the kind of samples
    "u8": (PCM, 1 / 100),
    "i16": (PCM, 1e-4),
    "i24": (PCM, 1e-4),
    "i32": (PCM, 1e-4),
    "f32": (FLOAT, 1e-4),
    "f64": (FLOAT, 1e-4),
}


@pytest.mark.parametrize("is_extensible", [False, True])
@pytest.mark.parametrize("kind", WAV_KINDS)
async def test_wav_files_of_every_kind_are_read(
    decoder: AudioDecoder, kind: str, is_extensible: bool
) -> None:
    tag, tolerance = WAV_KINDS[kind]
    bits = int(kind[1:])
    data = make_wav(
        encode_samples(TONE, kind),
        tag=EXTENSIBLE if is_extensible else tag,
        bits=bits,
        extension=extend(tag, bits) if is_extensible else b"",
    )

    samples = await read(decoder, data)

    np.testing.assert_allclose(samples, TONE, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("tag", "codec"), [(A_LAW, "pcm_alaw"), (MU_LAW, "pcm_mulaw")])
async def test_telephone_wav_files_are_read(decoder: AudioDecoder, tag: int, codec: str) -> None:
    tone = make_tone(1000, 1, 8000)
    data = encode(tone, "wav", codec, 8000, layout="mono")

    samples = await read(decoder, data)

    assert data[20] == tag
    assert len(samples) == 16_000
    np.testing.assert_allclose(samples[800:-800], TONE[800:-800], rtol=0, atol=0.02)


@pytest.mark.parametrize("channels", [2, 6, 300])
async def test_channels_are_mixed(decoder: AudioDecoder, channels: int) -> None:
    frames = np.zeros((16_000, channels), np.float32)
    frames[:, 0] = TONE  # the other channels are silent
    data = make_wav(encode_samples(frames.reshape(-1), "i16"), channels=channels)

    samples = await read(decoder, data)

    np.testing.assert_allclose(samples, TONE / channels, rtol=0, atol=1e-4)


async def test_20_bits_lie_at_the_upper_end_of_their_bytes(decoder: AudioDecoder) -> None:
    data = make_wav(encode_samples(TONE, "i32"), bits=20, frame_bytes=4)

    np.testing.assert_allclose(await read(decoder, data), TONE, rtol=0, atol=1e-4)


async def test_other_chunks_are_skipped(decoder: AudioDecoder) -> None:
    notes = make_chunk(b"LIST", b"INFOISFT") + make_chunk(b"odd ", b"123")
    data = make_wav(encode_samples(TONE, "i16"), before=notes) + make_chunk(b"LIST", b"x" * 50)

    assert len(await read(decoder, data)) == 16_000


async def test_floats_without_a_value_are_silent(decoder: AudioDecoder) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1e300, 0.25] * 10)
    data = make_wav(values.astype("<f8").tobytes(), tag=FLOAT, bits=64)

    samples = await read(decoder, data)

    np.testing.assert_allclose(samples[:5], [0, 1, -1, 1, 0.25], rtol=0, atol=1e-4)


# Format and codec of FFmpeg, the rate, and the most samples that the encoder adds.
ENCODED: dict[str, tuple[Callable[[], bytes], int]] = {
    "MP3": (lambda: make_mp3(1), 1200),
    "MP3 of another rate": (
        lambda: encode(make_tone(1000, 1, 22_050), "mp3", "libmp3lame", 22_050, layout="mono"),
        1200,
    ),
    "M4A": (lambda: encode(make_tone(1000, 1, 44_100), "ipod", "aac", 44_100), 1200),
    "MP4": (lambda: encode(make_tone(1000, 1, 48_000), "mp4", "aac", 48_000), 1200),
    "AAC": (lambda: encode(make_tone(1000, 1, 44_100), "adts", "aac", 44_100), 1200),
    "ALAC": (lambda: encode(make_tone(1000, 1, 44_100), "ipod", "alac", 44_100), 0),
    "FLAC": (lambda: encode(make_tone(1000, 1, 44_100), "flac", "flac", 44_100), 0),
    "WebM": (lambda: encode(make_tone(1000, 1, 48_000), "webm", "libopus", 48_000), 400),
    "Opus": (lambda: encode(make_tone(1000, 1, 48_000), "ogg", "libopus", 48_000), 400),
    "Vorbis": (lambda: encode(make_tone(1000, 1, 44_100), "ogg", "vorbis", 44_100), 1200),
    "MPEG": (lambda: encode(make_tone(1000, 1, 44_100), "mpeg", "mp2", 44_100), 1200),
    "AIFF": (lambda: encode(make_tone(1000, 1, 44_100), "aiff", "pcm_s16be", 44_100), 0),
}


@pytest.mark.parametrize("name", ENCODED)
async def test_files_of_other_formats_are_read(decoder: AudioDecoder, name: str) -> None:
    make, num_added = ENCODED[name]

    samples = await read(decoder, make())

    assert 16_000 - 4 <= len(samples) <= 16_000 + num_added + 4
    middle = samples[4000:12_000]
    loudest = np.abs(np.fft.rfft(middle)).argmax() * 16_000 / len(middle)
    assert loudest == 1000
    assert np.sqrt((middle**2).mean()) == pytest.approx(0.5 / np.sqrt(2), rel=0.1)


async def test_tags_before_the_sound_are_skipped(decoder: AudioDecoder) -> None:
    flac = encode(TONE, "flac", "flac", 16_000)
    tag = b"ID3\x04\0\0\0\0\x01\0" + bytes(128)

    assert len(await read(decoder, tag + flac)) == 16_000


async def test_tags_may_have_any_bytes(decoder: AudioDecoder) -> None:
    aiff = encode(TONE, "aiff", "pcm_s16be", 16_000)
    name = b"NAME\0\0\0\4\xff\xfea\xe9"

    assert len(await read(decoder, aiff[:12] + name + aiff[12:])) == 16_000


async def test_streams_that_follow_each_other_are_read(decoder: AudioDecoder) -> None:
    """The rate and the number of channels change in the middle of the file."""
    second = encode(make_tone(1000, 1, 22_050), "mp3", "libmp3lame", 22_050, layout="mono")

    samples = await read(decoder, make_mp3(1) + second)

    assert len(samples) == pytest.approx(32_000, abs=4000)


async def test_a_server_without_pyav_reads_wav_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_module, "find_spec", lambda name: None)
    decoder = AudioDecoder(AudioConfig())
    try:
        with pytest.raises(AudioExtraMissing, match=r"^file must be a WAV .+ extra audio .+ MP3$"):
            await decoder.decode(make_mp3())
        assert len(await read(decoder, make_wav(bytes(3200)))) == 1600
    finally:
        decoder.close()


async def test_a_sound_that_nobody_waits_for_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sound that stays open would be a ResourceWarning."""
    made = Queue[Sound]()
    goes_on = Event()
    decoder = AudioDecoder(AudioConfig(max_audio_decoders=1))

    def make(file: IO[bytes]) -> Sound:
        made.put(sound := Sound(file))
        goes_on.wait()
        return sound

    monkeypatch.setattr(decoder_module, "Sound", make)
    try:
        decoding = asyncio.create_task(decoder.decode(make_wav(bytes(3200))))
        sound = await asyncio.to_thread(made.get)
        decoding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await decoding
        goes_on.set()
        while True:
            try:
                sound.samples(0, 1)
            except ValueError:
                break
            await asyncio.sleep(0.01)
    finally:
        goes_on.set()
        decoder.close()


def test_an_error_can_name_another_field() -> None:
    error = InvalidAudio("must have sound").at("input_audio.data")

    assert (str(error), error.status) == ("input_audio.data must have sound", 400)
