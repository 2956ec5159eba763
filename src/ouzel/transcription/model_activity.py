"""Tells speech from other sounds by a model that rates frames."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.sound import SampledSound
from ouzel.transcription.voice_activity import SpeechProbabilities

_PIECE_FRAMES = 1024  # frames that are read from a sound together: half a minute


class FrameRater(Protocol):
    """Rates the frames of one sound, in order."""

    def rate(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the probability of speech in each frame of whole frames at 16 kHz."""
        ...


class ModelDetector:
    """Implements `VoiceActivity` by a model."""

    def __init__(self, start: Callable[[], FrameRater], frame_samples: int) -> None:
        """`start` begins a sound."""
        self._start = start
        self._frame_samples = frame_samples

    def find_speech(self, sound: SampledSound) -> SpeechProbabilities:
        rater = self._start()
        values: list[NDArray[np.float32]] = []
        size = _PIECE_FRAMES * self._frame_samples
        for begin in range(0, sound.num_samples, size):
            samples = sound.samples(begin, begin + size)
            missing = -len(samples) % self._frame_samples
            values.append(rater.rate(np.pad(samples, (0, missing))))
        empty = np.empty(0, np.float32)
        return SpeechProbabilities(np.concatenate([empty, *values]), self._frame_samples)

    def start_live(self) -> "LiveModelDetector":
        """Returns the detector of a sound that arrives in pieces."""
        return LiveModelDetector(self._start(), self._frame_samples)


class LiveModelDetector:
    """Implements `LiveVoiceActivity` by a model. Pieces of any size give the same."""

    def __init__(self, rater: FrameRater, frame_samples: int) -> None:
        self._rater = rater
        self.frame_samples = frame_samples
        self._rest = np.empty(0, np.float32)  # the samples of an incomplete frame

    def push(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        samples = np.concatenate([self._rest, samples])
        whole = len(samples) - len(samples) % self.frame_samples
        self._rest = samples[whole:].copy()
        return self._rater.rate(samples[:whole])
