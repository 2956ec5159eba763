"""The sound between parts has the silence that its marks ask for; stretching keeps the pitch."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.speaking.joints import PAUSES_S, shape_part
from ouzel.speaking.pieces import Break
from ouzel.speaking.time_stretch import stretch

RATE = 24_000


def make_tone(seconds: float, hertz: float = 200.0) -> NDArray[np.float32]:
    times = np.arange(int(seconds * RATE)) / RATE
    return (0.5 * np.sin(2 * np.pi * hertz * times)).astype(np.float32)


def make_spoken(before_s: float, after_s: float) -> NDArray[np.float32]:
    noise = np.random.default_rng(0).normal(0, 1e-4, int((before_s + 1 + after_s) * RATE))
    samples = noise.astype(np.float32)
    begin = int(before_s * RATE)
    samples[begin : begin + RATE] += make_tone(1.0)
    return samples


def count_silence(samples: NDArray[np.float32]) -> tuple[float, float]:
    """Returns the seconds before the first and after the last loud sample."""
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    return loud[0] / RATE, (len(samples) - 1 - loud[-1]) / RATE


@pytest.mark.parametrize("before_s", [0.0, 0.05, 0.4])
@pytest.mark.parametrize("following", list(Break))
def test_a_part_ends_with_the_pause_of_its_mark(before_s: float, following: Break) -> None:
    before, after = count_silence(shape_part(make_spoken(before_s, 0.5), RATE, following, 1.0))
    assert before <= 0.05
    assert after == pytest.approx(PAUSES_S[following] + 0.04, abs=0.01)


def test_the_last_part_has_no_pause_and_faster_speech_has_shorter_ones() -> None:
    _, after = count_silence(shape_part(make_spoken(0.3, 0.3), RATE, None, 1.0))
    assert after < 0.05
    _, after = count_silence(shape_part(make_spoken(0.3, 0.3), RATE, Break.LINE, 2.0))
    assert after == pytest.approx(PAUSES_S[Break.LINE] / 2 + 0.04, abs=0.01)


def test_edges_make_no_click() -> None:
    shaped = shape_part(make_tone(1.0, 1000.0), RATE, Break.SENTENCE, 1.0)
    edge = np.diff(np.concatenate([[0.0], shaped[:24]]))
    assert np.abs(edge).max() < 0.05
    assert shaped[0] == 0


def test_silence_has_no_sound_left() -> None:
    assert not len(shape_part(np.zeros(RATE, np.float32), RATE, None, 1.0))
    assert not len(shape_part(np.zeros(0, np.float32), RATE, None, 1.0))


@pytest.mark.parametrize("rate", [0.5, 0.75, 1.5, 2.0])
def test_stretching_changes_the_length_and_keeps_the_pitch(rate: float) -> None:
    stretched = stretch(make_tone(2.0), rate, RATE)
    assert len(stretched) == round(2 * RATE / rate)
    inner = stretched[RATE // 10 : -RATE // 5]
    crossings = np.count_nonzero(np.diff(np.signbit(inner)))
    assert crossings / (2 * len(inner) / RATE) == pytest.approx(200, rel=0.03)
    assert np.abs(inner).max() == pytest.approx(0.5, rel=0.1)


def test_short_sounds_are_returned_as_they_are() -> None:
    samples = make_tone(0.01)
    assert stretch(samples, 2.0, RATE) is samples
    assert stretch(make_tone(1.0), 1.0, RATE).tolist() == make_tone(1.0).tolist()
