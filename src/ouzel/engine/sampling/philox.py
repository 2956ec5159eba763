"""Makes random numbers with Philox4x32-10, as functions of a key and a counter only.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A draw
for (seed, choice, position) is the same alone and in any batch, before and after a preemption.
"""

import numpy as np
from numpy.typing import NDArray

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_INCREMENTS = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_MASK = 0xFFFFFFFF
_NUM_ROUNDS = 10

Words = NDArray[np.uint64]  # 32-bit words in 64-bit elements


def philox4x32(counters: Words, keys: Words) -> Words:
    """Turns counters [4, R] and keys [2, R] of 32-bit words into [4, R] random 32-bit words."""
    c0, c1, c2, c3 = counters
    k0, k1 = keys
    for _ in range(_NUM_ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (product1 >> _32) ^ c1 ^ k0,
            product1 & _LOW,
            (product0 >> _32) ^ c3 ^ k1,
            product0 & _LOW,
        )
        k0, k1 = (k0 + _KEY_INCREMENTS[0]) & _LOW, (k1 + _KEY_INCREMENTS[1]) & _LOW
    return np.stack([c0, c1, c2, c3])


def uniforms(
    seeds: NDArray[np.int64],
    indices: NDArray[np.int64],
    positions: NDArray[np.int64],
    draws: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Returns a number in [0, 1) per row, of 53 random bits.

    `draws` numbers the draws at one position.
    """
    key = seeds.astype(np.uint64)
    counters = np.stack(
        [
            positions.astype(np.uint64),
            indices.astype(np.uint64),
            draws.astype(np.uint64),
            np.zeros(key.shape, np.uint64),
        ]
    )
    words = philox4x32(counters, np.stack([key & _LOW, key >> _32]))
    bits = (words[0] << _32 | words[1]) >> np.uint64(11)
    result: NDArray[np.float64] = bits.astype(np.float64) * 2.0**-53
    return result


def uniform(seed: int, index: int, position: int, draw: int) -> float:
    """Computes one number of `uniforms` in plain integers: numpy takes ten times as long for one
    row.
    """
    return (_first_64_bits((position, index, draw, 0), seed) >> 11) * 2.0**-53


def random_bits(seed: int, index: int, position: int) -> int:
    """Returns 64 random bits that are independent of the numbers of `uniform`."""
    return _first_64_bits((position, index, 0, 1), seed)


def _first_64_bits(counter: tuple[int, int, int, int], seed: int) -> int:
    c0, c1, c2, c3 = counter
    k0, k1 = seed & _MASK, seed >> 32 & _MASK
    for _ in range(_NUM_ROUNDS):
        product0, product1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (
            product1 >> 32 ^ c1 ^ k0,
            product1 & _MASK,
            product0 >> 32 ^ c3 ^ k1,
            product0 & _MASK,
        )
        k0, k1 = k0 + 0x9E3779B9 & _MASK, k1 + 0xBB67AE85 & _MASK
    return c0 << 32 | c1
