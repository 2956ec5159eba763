"""Declares the sounds that a transcription reads, and the windows of features cut from them."""

import hashlib
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.sound import SampledSound
from ouzel.types.engine_request import AudioInput

SAMPLE_RATE: Final = 16_000  # samples per second
FRAME_SAMPLES: Final = 160  # samples of a frame of features
FRAMES_PER_S: Final = 100
_DIGEST_SIZE = 16


class Features(Protocol):
    """Computes the features of windows, such as a log-mel spectrogram."""

    def find_peak(self, sound: SampledSound) -> float:
        """Returns the largest value in the features of a sound, for the scale of all windows."""
        ...

    def window(self, sound: SampledSound, begin_sample: int, peak: float) -> NDArray[np.float32]:
        """Returns the features of 30 s, [bins, frames]; silence follows the sound's end."""
        ...


@dataclass(frozen=True, slots=True)
class SoundPart:
    """A sound without the samples from `num_samples` on."""

    whole: SampledSound
    num_samples: int

    def samples(self, begin: int, end: int) -> NDArray[np.float32]:
        return self.whole.samples(min(begin, self.num_samples), min(end, self.num_samples))


def compute_window(
    features: Features, sound: SampledSound, begin_frame: int, peak: float
) -> AudioInput:
    """Computes the engine's input for the window that begins at a frame of 10 ms."""
    values = features.window(sound, begin_frame * FRAME_SAMPLES, peak)
    content = np.ascontiguousarray(values, dtype="<f4").tobytes()
    num_bins, num_frames = values.shape
    return AudioInput(
        digest=hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest(),
        shape=(num_bins, num_frames),
        features=content,
    )
