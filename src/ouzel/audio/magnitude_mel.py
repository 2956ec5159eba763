"""Computes log-mel spectrograms of magnitudes, which Gemma 4 hears.

Unlike Whisper's (`mel`), they are logarithms of magnitudes instead of powers, their bins are
triangles of height 1 on the scale of HTK (S. Young et al., "The HTK Book", section 5.4), frames
begin in silence instead of a reflection, and no value depends on another frame.

Reference: transformers, models/gemma4/feature_extraction_gemma4.py.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.mel import Spectrogram
from ouzel.audio.sound import SAMPLE_RATE, SampledSound


@dataclass(frozen=True)
class MagnitudeMel:
    """Computes the features of one model. Threads may share it."""

    num_bins: int
    frame_size: int  # samples of a frame
    hop: int  # samples from the begin of a frame to the begin of the next
    fft_size: int  # samples of a frame with the zeros that follow it
    min_hz: float
    max_hz: float
    floor: float  # is added to each value before the logarithm
    factor: float = 1.0  # multiplies the samples
    means: tuple[float, ...] = ()  # are subtracted from the logarithms of each bin; empty: zeros
    deviations: tuple[float, ...] = ()  # divide the differences of each bin; empty: ones

    def count_frames(self, num_samples: int) -> int:
        """Returns the number of frames that have samples of the sound, and one sample behind."""
        return max((num_samples + self._before - self.frame_size - 1) // self.hop + 1, 0)

    def compute(self, sound: SampledSound) -> Spectrogram:
        """Returns the features, float32 [bins, frames]; the frames are `count_frames`.

        The middle of the first frame is the begin of the sound.
        """
        num_frames = self.count_frames(sound.num_samples)
        if not num_frames:
            return np.zeros((self.num_bins, 0), np.float32)
        end = (num_frames - 1) * self.hop + self.frame_size - self._before
        samples = np.pad(sound.samples(0, end), (self._before, 0))
        if self.factor != 1:
            samples *= np.float32(self.factor)
        frames = np.lib.stride_tricks.sliding_window_view(samples, self.frame_size)[:: self.hop]
        magnitudes = np.abs(np.fft.rfft(frames * self._taper, n=self.fft_size))
        values = np.log(magnitudes @ self._filters + self.floor)
        if self.means:
            values -= np.array(self.means)
        if self.deviations:
            values /= np.array(self.deviations)
        features: Spectrogram = np.ascontiguousarray(values.T, np.float32)
        return features

    @property
    def _before(self) -> int:
        """Returns the number of zeros before the first sample."""
        return self.frame_size // 2

    @cached_property
    def _taper(self) -> NDArray[np.float32]:
        """Returns the periodic Hann window."""
        angles = 2 * np.pi / self.frame_size * np.arange(self.frame_size)
        taper: NDArray[np.float32] = (0.5 - 0.5 * np.cos(angles)).astype(np.float32)
        return taper

    @cached_property
    def _filters(self) -> NDArray[np.float64]:
        """Returns the weight of each frequency in each bin, [frequencies, bins].

        Bin k is a triangle over the corners k, k + 1 and k + 2, which are equally spaced in mel.
        """
        frequencies = np.linspace(0, SAMPLE_RATE // 2, self.fft_size // 2 + 1)[:, None]
        corners = _to_hz(np.linspace(_to_mel(self.min_hz), _to_mel(self.max_hz), self.num_bins + 2))
        low, middle, high = corners[:-2], corners[1:-1], corners[2:]
        rising = (frequencies - low) / (middle - low)
        falling = (high - frequencies) / (high - middle)
        filters: NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling))
        return filters


def _to_mel(hz: float) -> float:
    return float(2595 * np.log10(1 + hz / 700))


def _to_hz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return 700 * (10 ** (mel / 2595) - 1)
