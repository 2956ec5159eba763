"""Tells speech from pauses while a sound arrives, by its energy, without a model.

The level of a frame is compared with the quietest of the last frames, as `EnergyDetector` does for
whole sounds. The samples to come are unknown, so a peak level is presumed until speech is louder:
the steady noise of a microphone is no speech.
"""

from collections import deque
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.transcription.voice_activity import (
    FRAME_SAMPLES,
    compute_frame_levels,
    compute_probabilities,
    estimate_noise,
)

_HISTORY_FRAMES = 1500  # 30 s
_SMOOTHED_FRAMES = 5
_NOISE_FRAMES = 10  # the noise is estimated anew after this number of frames
_PRESUMED_PEAK_DB = -30.0


class LiveVoiceActivity(Protocol):
    """Rates the frames of one sound as they arrive."""

    @property
    def frame_samples(self) -> int: ...

    def push(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the probability of speech in each frame that the samples complete.

        `samples` are float32 [samples] at 16 kHz, in pieces of any size.
        """
        ...


class LiveEnergyDetector:
    """Implements `LiveVoiceActivity` by the level of sound. Pieces of any size give the same."""

    frame_samples: Final = FRAME_SAMPLES

    def __init__(self) -> None:
        self._rest = np.empty(0, np.float32)  # the samples of an incomplete frame
        self._levels = deque[float](maxlen=_HISTORY_FRAMES)  # smoothed, in dB
        self._newest = deque[float](maxlen=_SMOOTHED_FRAMES)
        self._num_frames = 0
        self._noise_db = 0.0

    def push(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        samples = np.concatenate([self._rest, samples])
        whole = len(samples) - len(samples) % FRAME_SAMPLES
        self._rest = samples[whole:]
        smooth = np.empty(whole // FRAME_SAMPLES, np.float32)
        noise = np.empty_like(smooth)
        for number, level in enumerate(compute_frame_levels(samples[:whole]).tolist()):
            self._newest.append(level)
            smooth[number] = sum(self._newest) / len(self._newest)
            self._levels.append(float(smooth[number]))
            if self._num_frames % _NOISE_FRAMES == 0:
                self._noise_db = estimate_noise(np.array(self._levels), _PRESUMED_PEAK_DB)
            self._num_frames += 1
            noise[number] = self._noise_db
        probabilities = compute_probabilities(smooth, noise)
        num_early = max(_SMOOTHED_FRAMES - 1 - (self._num_frames - len(smooth)), 0)
        probabilities[:num_early] = 0  # too few frames to tell speech from a click
        return probabilities
