"""Tells speech from pauses by its energy, without a model.

The level of a frame is compared with the quietest frames of the same sound, so that the level of a
recording and its noise do not matter. A sound without quiet frames has no pauses. The detector
knows no difference between speech and other sounds: it finds places to cut, not words.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.sound import SampledSound
from ouzel.transcription.windows import SAMPLE_RATE

FRAME_SAMPLES: Final = SAMPLE_RATE // 50  # 20 ms
_PIECE_FRAMES = 3000  # frames that are read together: one minute
_SMOOTHED_FRAMES = 5
_LEAST_DB = -90.0
_SILENCE_DB = -65.0  # a frame with this level, relative to full scale, is a pause in any sound
_QUIET_SHARE = 0.1  # the noise has the level that this share of the frames does not exceed
# speech has at least this distance from the noise; in a sound of one level all is speech
_LEAST_RANGE_DB = 20.0
_MIDDLE_DB = 8.0  # a frame this far above the noise is speech with a probability of 0.5
_SLOPE_DB = 2.0


@dataclass(frozen=True, slots=True)
class SpeechProbabilities:
    values: NDArray[np.float32]  # [frames]
    frame_samples: int  # samples of a frame


class VoiceActivity(Protocol):
    """Finds the parts of a sound in which somebody speaks."""

    def find_speech(self, sound: SampledSound) -> SpeechProbabilities:
        """Returns the probability of speech in each frame; it may take seconds."""
        ...


class EnergyDetector:
    """Implements `VoiceActivity` by the level of sound."""

    def find_speech(self, sound: SampledSound) -> SpeechProbabilities:
        levels = _smooth(_compute_levels(sound))
        if not len(levels):
            return SpeechProbabilities(levels, FRAME_SAMPLES)
        noise = np.float32(estimate_noise(levels, _LEAST_DB))
        return SpeechProbabilities(compute_probabilities(levels, noise), FRAME_SAMPLES)


def estimate_noise(levels: NDArray[np.floating], least_peak_db: float) -> float:
    """Returns the level of the noise in dB, from the levels of at least one frame.

    Speech is presumed to reach `least_peak_db`.
    """
    quiet = float(np.quantile(levels, _QUIET_SHARE))
    noise = min(quiet, max(float(levels.max()), least_peak_db) - _LEAST_RANGE_DB)
    return max(noise, _SILENCE_DB - _MIDDLE_DB)


def compute_probabilities(
    levels: NDArray[np.float32], noise: NDArray[np.float32] | np.float32
) -> NDArray[np.float32]:
    """Returns the probability of speech for levels, given the level of the noise in dB."""
    values = 1 / (1 + np.exp((noise + _MIDDLE_DB - levels) / _SLOPE_DB))
    probabilities: NDArray[np.float32] = values.astype(np.float32)
    return probabilities


def compute_frame_levels(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the level of each frame in dB relative to full scale.

    The number of samples must be a multiple of FRAME_SAMPLES.
    """
    powers = np.mean(np.square(samples.reshape(-1, FRAME_SAMPLES)), axis=1)
    levels: NDArray[np.float32] = 10 * np.log10(np.maximum(powers, 10 ** (_LEAST_DB / 10)))
    return levels


def _compute_levels(sound: SampledSound) -> NDArray[np.float32]:
    """Returns the level of each frame in dB relative to full scale; the last may be shorter."""
    pieces: list[NDArray[np.float32]] = []
    size = _PIECE_FRAMES * FRAME_SAMPLES
    for begin in range(0, sound.num_samples, size):
        samples = sound.samples(begin, begin + size)
        missing = -len(samples) % FRAME_SAMPLES
        pieces.append(compute_frame_levels(np.pad(samples, (0, missing))))
    return np.concatenate(pieces) if pieces else np.empty(0, np.float32)


def _smooth(levels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the mean over the frames around each frame."""
    half = _SMOOTHED_FRAMES // 2
    padded = np.pad(levels, half, mode="edge") if len(levels) else levels
    kernel = np.full(_SMOOTHED_FRAMES, 1 / _SMOOTHED_FRAMES, np.float32)
    smooth = np.convolve(padded, kernel, "valid") if len(levels) else levels
    return smooth.astype(np.float32)
