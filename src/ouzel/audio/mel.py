"""Computes the log-mel spectrograms that Whisper hears.

The definition is in "Robust Speech Recognition via Large-Scale Weak Supervision" (Radford et al.,
2022), section 2.2, and in the program of its authors: power spectra of 25 ms every 10 ms, 80 or 128
mel bins up to 8 kHz, logarithms cut at 8 below the largest, and a shift and a scale to about
[-1, 1]. The bins come from M. Slaney's Auditory Toolbox (1998): linear up to 1 kHz, logarithmic
above, triangles of equal area.
"""

from functools import cache
from math import log
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ouzel.audio.sound import SAMPLE_RATE, SampledSound

HOP: Final = 160  # samples from one frame to the next: 10 ms
WINDOW_FRAMES: Final = 3000  # frames of the 30 s that Whisper hears at once
WINDOW_SAMPLES: Final = WINDOW_FRAMES * HOP
_FFT_SIZE = 400  # samples of a frame: 25 ms
_HALF = _FFT_SIZE // 2  # a frame is centred at its sample
_FLOOR = 1e-10  # least power, so that every power has a logarithm
_SILENCE = -10.0  # log10(_FLOOR)
_RANGE = 8.0  # powers of ten below the largest value that remain
_PIECE_FRAMES = 256  # frames whose spectra are computed together
# Frames of one product. numpy's BLAS divides a larger one among threads, which then wait in loops
# and take three times the processor time.
_PRODUCT_FRAMES = 16

Spectrogram = NDArray[np.float32]  # [bins, frames]


class MelSpectrogram:
    """Computes log-mel features with one number of bins. It has no state; threads may share it."""

    def __init__(self, num_bins: int) -> None:
        """`num_bins` is 80, or 128 for Whisper large-v3 and its descendants."""
        self.num_bins = num_bins
        self._filters = _make_filters(num_bins)
        # The periodic Hann window.
        self._taper = 0.5 - 0.5 * np.cos(2 * np.pi / _FFT_SIZE * np.arange(_FFT_SIZE))

    def compute(self, samples: NDArray[np.float32], peak: float | None = None) -> Spectrogram:
        """Returns the features of float32 [samples], as float32 [bins, samples // HOP].

        The samples are reflected at both ends. `peak` is the largest log10 of a power (see
        `find_peak`); without it the largest value of these frames is used. Raises ValueError for no
        samples.
        """
        if not len(samples):
            raise ValueError("a spectrogram needs at least one sample")
        padded = np.pad(samples, _HALF, mode="reflect")
        return self._scale(self._powers(padded, len(samples) // HOP), peak)

    def find_peak(self, sound: SampledSound) -> float:
        """Returns the largest log10 of a power in any bin and frame of a sound.

        All windows of a sound use the same peak, so that a quiet window is not amplified. The sound
        is read in pieces.
        """
        peak = _SILENCE
        for begin in range(0, sound.num_samples + _HALF, _PIECE_FRAMES * HOP):
            powers = self._powers(_read_around(sound, begin, _PIECE_FRAMES), _PIECE_FRAMES)
            peak = max(peak, float(powers.max()))
        return peak

    def window(self, sound: SampledSound, begin_sample: int, peak: float) -> Spectrogram:
        """Returns the features of the 30 s from `begin_sample`, as float32 [bins, 3000].

        The frames equal the frames of the whole sound's spectrogram: frames at the edges use the
        neighbouring samples. Silence follows the end of the sound, and the samples before its begin
        are a reflection. `peak` comes from `find_peak`.
        """
        samples = _read_around(sound, begin_sample, WINDOW_FRAMES)
        return self._scale(self._powers(samples, WINDOW_FRAMES), peak)

    def _powers(self, samples: NDArray[np.float32], num_frames: int) -> NDArray[np.float32]:
        """Returns log10 of the power in each bin, [bins, frames].

        The first frame begins at the first sample.
        """
        powers = np.empty((self.num_bins, num_frames), np.float32)
        frames = sliding_window_view(samples, _FFT_SIZE)[::HOP][:num_frames]
        for begin in range(0, num_frames, _PIECE_FRAMES):
            spectrum = np.fft.rfft(frames[begin : begin + _PIECE_FRAMES] * self._taper)
            energies = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
            for first in range(0, len(energies), _PRODUCT_FRAMES):
                few = energies[first : first + _PRODUCT_FRAMES].T
                place = begin + first
                np.matmul(self._filters, few, out=powers[:, place : place + few.shape[1]])
        np.maximum(powers, np.float32(_FLOOR), out=powers)
        return np.log10(powers, out=powers)

    def _scale(self, powers: NDArray[np.float32], peak: float | None) -> Spectrogram:
        if peak is None:
            peak = float(powers.max(initial=_SILENCE))
        np.maximum(powers, np.float32(peak - _RANGE), out=powers)
        powers += np.float32(4)
        powers *= np.float32(1 / 4)
        return powers


def _read_around(sound: SampledSound, begin: int, num_frames: int) -> NDArray[np.float32]:
    """Reads the samples of frames that are centred at `begin`, `begin` + HOP and so on.

    Samples before the begin of the sound are reflected; samples after its end are zeros.
    """
    first = begin - _HALF
    size = (num_frames - 1) * HOP + _FFT_SIZE
    samples = np.zeros(size, np.float32)
    read = sound.samples(first, first + size)
    skipped = max(-first, 0)
    samples[skipped : skipped + len(read)] = read
    if skipped:
        # Sample -n is sample n; zeros stand for samples that a very short sound does not have.
        reflected = sound.samples(1, 1 + skipped)
        samples[skipped - len(reflected) : skipped] = reflected[::-1]
    return samples


@cache
def _make_filters(num_bins: int) -> NDArray[np.float32]:
    """Returns the weight of each frequency in each bin, [bins, 201].

    Bin k is a triangle over the corners k, k + 1 and k + 2, which are equally spaced in mel. Its
    area is 1 over a scale of Hz.
    """
    frequencies = np.linspace(0, SAMPLE_RATE / 2, _FFT_SIZE // 2 + 1)
    corners = _to_hz(np.linspace(0, _to_mel(SAMPLE_RATE / 2), num_bins + 2))
    low, middle, high = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rising = (frequencies - low) / (middle - low)
    falling = (high - frequencies) / (high - middle)
    triangles = np.maximum(0, np.minimum(rising, falling))
    return (triangles * (2 / (high - low))).astype(np.float32)


# Slaney's scale: 3 mel are 200 Hz up to 1 kHz (15 mel), and 27 mel are a factor of 6.4 above.
_LINEAR_MEL, _LINEAR_HZ = 15.0, 1000.0
_HZ_PER_MEL = 200 / 3
_LOG_STEP = log(6.4) / 27


def _to_mel(hz: float) -> float:
    """Returns the mel of a frequency of at least 1 kHz."""
    return _LINEAR_MEL + log(hz / _LINEAR_HZ) / _LOG_STEP


def _to_hz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    logarithmic = _LINEAR_HZ * np.exp((mel - _LINEAR_MEL) * _LOG_STEP)
    return np.where(mel < _LINEAR_MEL, mel * _HZ_PER_MEL, logarithmic)
