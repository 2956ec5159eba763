"""Changes the rate of samples to 16 kHz, with a windowed sinc in polyphase form.

The filter is h(t) = c sinc(c t) kaiser(t), over 32 zero crossings on both sides; t is in samples of
the input and c the cutoff: 0.95 of the lower of the two Nyquist frequencies. Kaiser's window with
beta 8 keeps the images and aliases 80 dB below the sound (J. F. Kaiser, "Nonrecursive digital
filter design using the I0-sinh window function", 1974). The output is in phase with the input:
sample n is the input at the time n / 16000 s, and zeros surround the input.

The phases repeat after L outputs, which take M inputs: 160 and 441 for 44.1 kHz. Each block of 64
outputs of such a period is one product of a matrix and the same part of many periods.
"""

from fractions import Fraction
from math import ceil, floor

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ouzel.audio.sound import SAMPLE_RATE

_ZERO_CROSSINGS = 32
_CUTOFF = 0.95
_BETA = 8.0
_BLOCK = 64  # outputs of one product
# Limit of L times the inputs per output. Rates with a longer period, such as 999,983 Hz, are
# changed by less than 8 in a million.
_MAX_PERIOD = 2**16

Samples = NDArray[np.float32]


class Resampler:
    """Resamples one stream of mono samples in pieces of any size."""

    def __init__(self, rate: int) -> None:
        """`rate` is the input's rate in Hz, at least 1."""
        inputs_per_output = Fraction(rate, SAMPLE_RATE)
        limit = _MAX_PERIOD * SAMPLE_RATE // max(rate, SAMPLE_RATE)
        self._step = inputs_per_output.limit_denominator(limit)
        self._is_identity = self._step == 1
        num_periods = ceil(_BLOCK / self._step.denominator)  # short periods are taken together
        # The outputs and inputs of one period.
        self._num_outputs = self._step.denominator * num_periods
        self._num_inputs = self._step.numerator * num_periods
        cutoff = _CUTOFF * min(1.0, 1 / float(self._step))
        self._padding = ceil(_ZERO_CROSSINGS / cutoff) + 1
        self._blocks = [] if self._is_identity else self._make_blocks(cutoff)
        # Inputs from `padding` samples before the next period.
        self._pending = np.zeros(self._padding, np.float32)
        self._num_pushed = self._num_made = 0

    def push(self, samples: Samples) -> Samples:
        """Takes float32 [inputs] and returns the outputs that are complete, float32 [outputs]."""
        if self._is_identity:
            return samples
        self._num_pushed += len(samples)
        self._pending = np.concatenate([self._pending, samples])
        num_periods = (len(self._pending) - 2 * self._padding) // self._num_inputs
        if num_periods <= 0:
            return np.empty(0, np.float32)
        made = np.empty((num_periods, self._num_outputs), np.float32)
        for first_output, first_input, weights in self._blocks:
            parts = sliding_window_view(self._pending, len(weights))
            parts = parts[first_input :: self._num_inputs][:num_periods]
            end = first_output + weights.shape[1]
            made[:, first_output:end] = np.ascontiguousarray(parts) @ weights
        self._pending = self._pending[num_periods * self._num_inputs :].copy()
        self._num_made += made.size
        return made.reshape(-1)

    def finish(self) -> Samples:
        """Returns the last outputs, for which zeros follow the input."""
        if self._is_identity:
            return np.empty(0, np.float32)
        num_missing = ceil(self._num_pushed / self._step) - self._num_made
        num_pushed = self._num_pushed
        made = self.push(np.zeros(self._num_inputs + 2 * self._padding, np.float32))
        self._num_pushed = num_pushed
        return made[:num_missing]

    def _make_blocks(self, cutoff: float) -> list[tuple[int, int, Samples]]:
        """Returns for each block its first output, its first input and its weights.

        The weights are [inputs, outputs]; the inputs count from `padding` samples before the
        period.
        """
        blocks = list[tuple[int, int, Samples]]()
        for begin in range(0, self._num_outputs, _BLOCK):
            end = min(begin + _BLOCK, self._num_outputs)
            first = floor(begin * self._step)
            last = floor((end - 1) * self._step) + 2 * self._padding
            places = np.array([float(n * self._step - first) for n in range(begin, end)])
            inputs = np.arange(last - first) - self._padding
            times = inputs[:, None] - places[None, :]
            blocks.append((begin, first, _compute_filter(times, cutoff).astype(np.float32)))
        return blocks


def _compute_filter(times: NDArray[np.float64], cutoff: float) -> NDArray[np.float64]:
    """Returns h(t) for times in samples of the input."""
    crossings = times * (cutoff / _ZERO_CROSSINGS)
    inside = np.maximum(0, 1 - crossings**2)
    taper = np.where(inside > 0, np.i0(_BETA * np.sqrt(inside)) / np.i0(_BETA), 0)
    filtered: NDArray[np.float64] = cutoff * np.sinc(cutoff * times) * taper
    return filtered
