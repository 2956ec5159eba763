"""Sound that arrives in pieces is cut into turns."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.audio.sound import SAMPLE_RATE
from ouzel.transcription.live.intake import InputFormat, Intake
from ouzel.transcription.live.live_input import LiveInput, TurnStarted, TurnStopped
from ouzel.transcription.live.speech_probability import LiveEnergyDetector
from ouzel.transcription.options import VoiceDetection

RATE = 24_000
LIMIT = 60 * SAMPLE_RATE
DETECTION = VoiceDetection(silence_duration_ms=500)


def make_input(detection: VoiceDetection | None = DETECTION, max_samples: int = LIMIT) -> LiveInput:
    live = LiveInput(LiveEnergyDetector, max_samples=max_samples)
    live.configure(InputFormat.PCM, detection)
    return live


def make_speech(*durations_s: float) -> bytes:
    """Returns noise of a microphone and a loud tone in turn, as bytes of 24 kHz."""
    parts: list[NDArray[np.float64]] = []
    for number, duration_s in enumerate(durations_s):
        times = np.arange(round(duration_s * RATE)) / RATE
        noise = np.random.default_rng(number).normal(0, 0.002, len(times))
        parts.append(noise + number % 2 * 0.3 * np.sin(2 * np.pi * 300 * times))
    return (np.concatenate(parts) * 32767).astype("<i2").tobytes()


def push(live: LiveInput, data: bytes, size: int) -> list[tuple[str, int]]:
    """Returns the edges of the sound in milliseconds, after pieces of `size` bytes."""
    edges: list[tuple[str, int]] = []
    for begin in range(0, len(data), size):
        for edge in live.append(data[begin : begin + size]):
            match edge:
                case TurnStarted(start_ms):
                    edges.append(("start", start_ms))
                case TurnStopped(end_ms, sound):
                    edges.append(("stop", end_ms))
                    start_ms = edges[-2][1]
                    assert sound.duration_s * 1000 == pytest.approx(end_ms - start_ms, abs=2)
    return edges


@pytest.mark.parametrize("size", [333, 4800, 10**7])
def test_pieces_of_any_size_have_the_same_turns(size: int) -> None:
    edges = push(make_input(), make_speech(1, 1, 1, 0.5, 1), size)
    assert [name for name, _ in edges] == ["start", "stop", "start", "stop"]
    expected = [700, 2540, 2700, 4040]
    assert [time_ms for _, time_ms in edges] == pytest.approx(expected, abs=80)
    assert edges == push(make_input(), make_speech(1, 1, 1, 0.5, 1), 4801)


def test_a_short_pause_ends_no_turn() -> None:
    edges = push(make_input(), make_speech(1, 1, 0.3, 1, 1), 4800)
    assert [name for name, _ in edges] == ["start", "stop"]


def test_a_turn_that_begins_at_once_begins_at_zero() -> None:
    assert push(make_input(), make_speech(0, 1, 1), 4800)[0] == ("start", 0)


def test_silence_is_dropped_while_nobody_speaks() -> None:
    live = make_input()
    assert push(live, make_speech(20), 4800) == []
    assert live.num_bytes <= 0.4 * SAMPLE_RATE * 2


def test_a_detection_that_begins_later_drops_the_buffer() -> None:
    live = make_input(None)
    push(live, make_speech(0, 2), 4800)
    live.configure(InputFormat.PCM, DETECTION)
    [start, stop] = push(live, make_speech(1, 1, 1), 4800)
    assert (start[1], stop[1]) == pytest.approx((2700, 4540), abs=80)


def test_a_change_of_the_format_keeps_the_sound_before() -> None:
    live = make_input(None)
    push(live, make_speech(1), 4800)
    live.configure(InputFormat.PCMU, None)
    live.append(bytes(8000))
    assert live.commit().duration_s == pytest.approx(2, abs=0.001)
    assert live.num_bytes == 0


def test_bytes_may_be_cut_within_a_sample() -> None:
    data = make_speech(0, 0.5)
    whole, cut = Intake(InputFormat.PCM), Intake(InputFormat.PCM)
    pieces = [cut.push(data[begin : begin + 3]) for begin in range(0, len(data), 3)]
    expected = np.concatenate([whole.push(data), whole.finish()])
    assert np.allclose(np.concatenate([*pieces, cut.finish()]), expected, atol=1e-6)


def test_a_click_at_the_beginning_is_no_speech() -> None:
    assert push(make_input(), make_speech(0, 0.02, 2), 4800) == []


def test_loud_speech_is_told_from_steady_noise() -> None:
    detector = LiveEnergyDetector()
    intake = Intake(InputFormat.PCM)
    probabilities = detector.push(intake.push(make_speech(2, 2)))
    frames = SAMPLE_RATE // detector.frame_samples
    assert probabilities[: 2 * frames - 5].max() < 0.5
    assert probabilities[2 * frames + 5 :].min() > 0.9
