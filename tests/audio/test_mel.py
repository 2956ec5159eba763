"""Log-mel features are equal to the features of transformers, whole or in windows."""

from pathlib import Path

import numpy as np
import pytest

from ouzel.audio.mel import HOP, WINDOW_FRAMES, MelSpectrogram
from ouzel.audio.sound import Sound
from tests.audio.signals import SIGNALS, make_noise, make_voice

REFERENCES = np.load(Path(__file__).parent / "data" / "mel_references.npz")
STEP = 7  # every seventh frame is stored
SECOND = 16_000


@pytest.mark.parametrize("num_bins", [80, 128])
@pytest.mark.parametrize("name", SIGNALS)
def test_features_equal_the_reference(name: str, num_bins: int) -> None:
    features = MelSpectrogram(num_bins).compute(SIGNALS[name]())

    assert features.dtype == np.float32
    assert features.shape == (num_bins, len(SIGNALS[name]()) // HOP)
    np.testing.assert_allclose(
        features[:, ::STEP], REFERENCES[f"{name}-{num_bins}"], rtol=0, atol=1e-5
    )


def test_silence_has_the_least_value() -> None:
    features = MelSpectrogram(80).compute(np.zeros(SECOND, np.float32))

    np.testing.assert_allclose(features, (4 - 10) / 4, rtol=0, atol=1e-6)


@pytest.mark.parametrize("num_samples", [1, 100, HOP, 399, 400, 401])
def test_short_sounds_have_whole_frames_only(num_samples: int) -> None:
    features = MelSpectrogram(80).compute(make_noise(num_samples / SECOND, 0.5, seed=1))

    assert features.shape == (80, num_samples // HOP)
    assert np.isfinite(features).all()


def test_no_samples_have_no_features() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        MelSpectrogram(80).compute(np.zeros(0, np.float32))


def test_windows_are_parts_of_the_whole_spectrogram() -> None:
    """The loudest place is in the third window; the whole sound is followed by 30 s of zeros."""
    mel = MelSpectrogram(80)
    voice = make_voice(70, seed=5)
    voice[: 60 * SECOND] *= 0.05
    sound = Sound.from_samples(voice)
    whole = mel.compute(np.pad(sound.samples(0, len(voice)), (0, 30 * SECOND)))
    peak = mel.find_peak(sound)

    for begin_s in (0, 13.37, 30, 60, 69.99):
        first = round(begin_s * SECOND / HOP)
        window = mel.window(sound, first * HOP, peak)
        expected = whole[:, first : first + WINDOW_FRAMES]
        assert window.shape == (80, WINDOW_FRAMES)
        np.testing.assert_allclose(window[:, : expected.shape[1]], expected, rtol=0, atol=1e-6)
    sound.close()


def test_the_peak_is_found_in_every_piece() -> None:
    mel = MelSpectrogram(128)
    for place in (0, 10 * SECOND - 1, 10 * SECOND, 25 * SECOND - 1):
        samples = np.zeros(25 * SECOND, np.float32)
        samples[place] = 0.5
        whole = mel.compute(np.pad(samples, (0, 30 * SECOND)))

        peak = mel.find_peak(Sound.from_samples(samples))

        assert (peak + 4) / 4 == pytest.approx(whole.max(), abs=1e-6)


@pytest.mark.parametrize("num_samples", [0, 1, 150])
def test_a_very_short_sound_has_a_window(num_samples: int) -> None:
    mel = MelSpectrogram(80)
    sound = Sound.from_samples(np.full(num_samples, 0.5, np.float32))

    window = mel.window(sound, 0, mel.find_peak(sound))

    assert window.shape == (80, WINDOW_FRAMES)
    assert np.isfinite(window).all()
