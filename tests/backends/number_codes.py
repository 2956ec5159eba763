"""Lists the values of small number formats, and rounds and packs numbers into their codes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

F4E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
NF4 = """-1 -0.6961928009986877 -0.5250730514526367 -0.39491748809814453
-0.28444138169288635 -0.18477343022823334 -0.09105003625154495 0
0.07958029955625534 0.16093020141124725 0.24611230194568634 0.33791524171829224
0.44070982933044434 0.5626170039176941 0.7229568362236023 1"""


def f8e4m3(stored: int) -> float:
    sign, exponent, mantissa = -1 if stored & 128 else 1, (stored >> 3) & 15, stored & 7
    return sign * (
        mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    )


F8E4M3 = np.array([f8e4m3(stored) for stored in range(256) if stored & 127 != 127])
F8E4M3_STORED = np.array([stored for stored in range(256) if stored & 127 != 127], np.uint8)


def nearest(levels: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    chosen: NDArray[np.int64] = np.abs(values[..., None] - levels).argmin(axis=-1)
    return chosen


def pack_bytes(levels: Any, *, even_is_high: bool = False) -> NDArray[np.uint8]:
    even, odd = levels[..., 0::2], levels[..., 1::2]
    packed: NDArray[np.uint8] = ((even << 4 | odd) if even_is_high else (odd << 4 | even)).astype(
        np.uint8
    )
    return packed
