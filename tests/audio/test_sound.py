"""Sounds hold samples in memory or in a file, and return any part."""

import numpy as np
import pytest

from ouzel.audio.sound import Sound, quantize
from tests.audio.signals import make_noise

LONG_S = 70  # more samples than a sound holds in memory


@pytest.mark.parametrize("seconds", [1, LONG_S])
def test_parts_are_returned(seconds: float) -> None:
    noise = make_noise(seconds, 0.9, seed=1)

    with Sound.from_samples(noise) as sound:
        assert (sound.num_samples, sound.duration_s) == (len(noise), seconds)
        part = sound.samples(len(noise) - 500, len(noise) - 100)
        assert part.dtype == np.float32
        np.testing.assert_allclose(part, noise[-500:-100], rtol=0, atol=1 / 65535)


def test_bounds_are_cut_to_the_sound() -> None:
    sound = Sound.from_samples(np.arange(10, dtype=np.int16))

    parts = [sound.samples(*bounds) for bounds in ((-5, 3), (8, 20), (6, 2), (20, 30))]

    assert [(part * 32768).tolist() for part in parts] == [[0, 1, 2], [8, 9], [], []]


def test_loud_samples_are_clipped() -> None:
    sound = Sound.from_samples(np.array([2, 1, 0, -1, -2], np.float32))

    largest = 32767 / 32768
    assert sound.samples(0, 5).tolist() == [largest, largest, 0, -1, -1]


def test_a_sound_does_not_change_with_its_array() -> None:
    samples = np.ones(3, np.int16)
    sound = Sound.from_samples(samples)
    samples[:] = 7

    assert (sound.samples(0, 3) * 32768).tolist() == [1, 1, 1]


@pytest.mark.parametrize("seconds", [1, LONG_S])
def test_a_closed_sound_says_so(seconds: float) -> None:
    sound = Sound.from_samples(make_noise(seconds, 0.1, seed=1))
    sound.close()
    sound.close()

    with pytest.raises(ValueError, match="closed"):
        sound.samples(0, 1)


def test_channels_are_no_sound() -> None:
    with pytest.raises(ValueError, match=r"one dimension, given \(2, 8\)"):
        Sound.from_samples(np.zeros((2, 8), np.float32))


def test_samples_are_rounded() -> None:
    assert quantize(np.array([0.6, -0.6, 0.4], np.float32) / np.float32(32768)).tolist() == [
        1,
        -1,
        0,
    ]
