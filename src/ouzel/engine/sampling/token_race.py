"""Draws a token by a race: each token takes an exponential random time over its weight, the first
one wins.

A token wins with a probability in proportion to its weight. (The largest sum of log weight and
Gumbel noise is the same draw.) A token's random time depends only on the key of the race and the
token's id. So rounding changes the winner only if two tokens finish at nearly the same time, and
the removal of a token changes nothing unless it was the winner.

The random bits are SplitMix64's (Steele, Lea, Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014): the key is the seed, and the token's id is the place in the stream. The
upper 32 of the 64 bits count, before the last step, which would change only the lowest of them.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.state.columns import Row

_GAMMA = 0x9E3779B97F4A7C15
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27))
_32 = np.uint64(32)
_MASK = 0xFFFFFFFFFFFFFFFF
_CHUNK = 16_384  # tokens whose bits are mixed in the CPU's cache
_STRIDES = np.arange(1, _CHUNK + 1, dtype=np.uint64) * np.uint64(_GAMMA)
_HALF, _UNIT = np.float32(0.5), np.float32(2.0**-32)
_ROUNDING = 1e-6  # more than the relative error of the bounds in float32

Keys = NDArray[np.uint64]


def exponentials(keys: Keys, token_ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns a standard exponential number for each token, drawn by its key and its id.

    The number is the token's time in the race at a weight of 1. Keys and ids broadcast.
    """
    bits = keys + (token_ids.astype(np.uint64) + np.uint64(1)) * np.uint64(_GAMMA)
    _mix(bits, np.empty_like(bits))
    times: NDArray[np.float64] = -np.log1p(-((bits >> _32).astype(np.float64) + 0.5) * 2.0**-32)
    return times


class TokenRace:
    """Runs the race of a whole row, which can be repeated with some of its tokens."""

    def __init__(self, key: int, bounds: Row, rates: Row) -> None:
        """Overwrites both rows and keeps them."""
        self._key = key
        self._bounds = bounds
        self._rates = rates
        fill_bounds(key, bounds)

    def pick(self, weights: Row) -> int:
        """Returns the winner among the tokens with a weight above 0.

        No token is faster than its bound. So exact times are computed only for tokens whose bound
        reaches the exact time of one token: one or a few.
        """
        np.divide(weights, self._bounds, out=self._rates)
        first = int(self._rates.argmax())
        reached = float(self._exact_rates(weights, np.array([first]))[0])
        contenders = np.flatnonzero(self._rates >= np.float32(reached * (1.0 - _ROUNDING)))
        if contenders.size <= 1:
            return first
        return int(contenders[self._exact_rates(weights, contenders).argmax()])

    def _exact_rates(self, weights: Row, token_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        rates: NDArray[np.float64] = weights[token_ids] / exponentials(
            np.array(self._key, dtype=np.uint64), token_ids
        )
        return rates


def fill_bounds(key: int, bounds: Row) -> None:
    """Writes the uniform random number u of each token. The token's time is -log(1 - u) >= u."""
    bits = np.empty(_CHUNK, dtype=np.uint64)
    shifted = np.empty(_CHUNK, dtype=np.uint64)
    for begin in range(0, bounds.size, _CHUNK):
        chunk = bounds[begin : begin + _CHUNK]
        size = chunk.size
        np.add(_STRIDES[:size], np.uint64((key + begin * _GAMMA) & _MASK), out=bits[:size])
        _mix(bits[:size], shifted[:size])
        np.right_shift(bits[:size], _32, out=shifted[:size])
        np.copyto(chunk, shifted[:size], casting="same_kind")
        chunk += _HALF
        chunk *= _UNIT


def _mix(bits: NDArray[np.uint64], shifted: NDArray[np.uint64]) -> None:
    """Mixes each element in place; overwrites `shifted`."""
    for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS, strict=True):
        np.right_shift(bits, shift, out=shifted)
        np.bitwise_xor(bits, shifted, out=bits)
        np.multiply(bits, multiplier, out=bits)
