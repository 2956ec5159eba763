"""The resampler keeps sound below 7 kHz, and its output does not depend on pieces."""

import numpy as np
import pytest

from ouzel.audio.resampler import Resampler
from tests.audio.signals import make_tone

RATES = [8000, 11_025, 12_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000, 44_101, 300_007]
EDGE = 800  # samples near the ends, where zeros are a part of the sum


@pytest.mark.parametrize("rate", RATES)
def test_tones_keep_their_shape(rate: int) -> None:
    frequency = 3000.0
    resampler = Resampler(rate)

    made = np.concatenate([resampler.push(make_tone(frequency, 1, rate)), resampler.finish()])

    assert len(made) == 16_000
    expected = make_tone(frequency, 1)
    np.testing.assert_allclose(made[EDGE:-EDGE], expected[EDGE:-EDGE], rtol=0, atol=3e-4)


@pytest.mark.parametrize("frequency", [100, 1000, 5000, 7000])
def test_frequencies_of_speech_pass(frequency: float) -> None:
    resampler = Resampler(44_100)

    made = np.concatenate([resampler.push(make_tone(frequency, 1, 44_100)), resampler.finish()])

    np.testing.assert_allclose(
        made[EDGE:-EDGE], make_tone(frequency, 1)[EDGE:-EDGE], rtol=0, atol=2e-4
    )


@pytest.mark.parametrize("frequency", [8600, 12_000, 20_000])
def test_frequencies_that_would_alias_are_removed(frequency: float) -> None:
    resampler = Resampler(44_100)

    made = np.concatenate([resampler.push(make_tone(frequency, 1, 44_100)), resampler.finish()])

    assert np.abs(made[EDGE:-EDGE]).max() < 1e-4  # 74 dB below the tone


@pytest.mark.parametrize("rate", [16_000, 11_025, 44_100, 48_000])
def test_pieces_make_the_same_sound(rate: int) -> None:
    tone = make_tone(500, 0.7, rate)
    whole, pieces = Resampler(rate), Resampler(rate)

    made = [whole.push(tone), whole.finish()]
    cut = [pieces.push(part) for part in np.split(tone, [1, 2, 500, 500, 5000])]

    np.testing.assert_allclose(
        np.concatenate([*cut, pieces.finish()]), np.concatenate(made), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(("rate", "num_made"), [(44_100, 1), (8000, 2), (1000, 16), (1_000_000, 1)])
def test_one_sample_is_a_sound(rate: int, num_made: int) -> None:
    resampler = Resampler(rate)

    made = np.concatenate([resampler.push(np.ones(1, np.float32)), resampler.finish()])

    assert made.shape == (num_made,)
