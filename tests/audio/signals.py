"""Makes deterministic sounds, as float32 samples at 16 kHz."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

RATE = 16_000


def make_tone(frequency: float, seconds: float, rate: int = RATE) -> NDArray[np.float32]:
    """Returns a sine at half of the full scale."""
    times = np.arange(round(seconds * rate)) / rate
    return (0.5 * np.sin(2 * np.pi * frequency * times)).astype(np.float32)


def make_noise(seconds: float, level: float, seed: int) -> NDArray[np.float32]:
    """Returns uniform noise. PCG64 gives the same numbers with every version of numpy."""
    generator = np.random.Generator(np.random.PCG64(seed))
    noise = 2 * generator.random(round(seconds * RATE)) - 1
    return (level * noise).astype(np.float32)


def make_voice(seconds: float, seed: int) -> NDArray[np.float32]:
    """Returns harmonics of 140 Hz in syllables, with noise."""
    times = np.arange(round(seconds * RATE)) / RATE
    voice = sum(np.sin(2 * np.pi * 140 * k * times + k) / k for k in range(1, 30))
    syllables = np.maximum(0, np.sin(2 * np.pi * 2.5 * times)) ** 2
    voiced: NDArray[np.float32] = (0.2 * voice * syllables).astype(np.float32)
    return voiced + make_noise(seconds, 0.003, seed)


SIGNALS: dict[str, Callable[[], NDArray[np.float32]]] = {
    "tones": lambda: make_tone(440, 2.005) + np.float32(0.3) * make_tone(5000, 2.005),
    "noise": lambda: make_noise(2.5, 0.4, seed=1),
    "voice": lambda: make_voice(4, seed=2),
    "quiet": lambda: make_noise(2, 1e-4, seed=3),
}
