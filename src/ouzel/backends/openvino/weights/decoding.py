"""Decodes matrices to float32, for another width or if no kernel takes their encoding."""

from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import Encoding, Parts, unpack_nibbles

# Open Compute Project, Microscaling Formats (MX) 1.0: one sign, two exponent bits, one mantissa
# bit.
_F4E2M1_HALF = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
F4E2M1 = np.array(_F4E2M1_HALF + [-value for value in _F4E2M1_HALF], np.float32)

# Dettmers et al., QLoRA (2023), appendix E: quantiles of the normal distribution.
NF4 = np.array(
    [
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ],
    np.float32,
)


def decode(encoding: Encoding, parts: Parts) -> NDArray[np.float32]:
    """Returns [rows, columns] as float32; the parts must be as encodings.py defines them."""
    levels = decode_values(encoding, parts["values"])
    if encoding.scales is None:
        return levels
    num_rows, columns = levels.shape
    grouped = levels.reshape(num_rows, encoding.num_groups(columns), -1)
    if encoding.zeros is not None:
        grouped = grouped - parts["zeros"].astype(np.float32)[:, :, None]
    with np.errstate(all="ignore"):  # finite.py refuses scales that are NaN or infinite
        decoded = grouped * decode_scales(encoding, parts["scales"])[:, :, None]
        return decoded.reshape(num_rows, columns)


def decode_values(encoding: Encoding, values: NDArray[Any]) -> NDArray[np.float32]:
    match encoding.values:
        case "u8" | "i8" | "f32":
            return values.astype(np.float32)
        case "bf16":
            return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
        case "u4":
            return unpack_nibbles(values).astype(np.float32)
        case "i4":
            return ((unpack_nibbles(values) ^ np.uint8(8)).astype(np.float32)) - np.float32(8)
        case "f4e2m1":
            return F4E2M1[unpack_nibbles(values)]
        case "nf4":
            return NF4[unpack_nibbles(values)]
        case _:
            assert_never(encoding.values)


def decode_scales(encoding: Encoding, scales: NDArray[Any]) -> NDArray[np.float32]:
    if encoding.scales == "f8e8m0":
        return decode_f8e8m0(scales)
    return scales.astype(np.float32)


def decode_f8e8m0(exponents: NDArray[Any]) -> NDArray[np.float32]:
    """Decodes exponents to powers of two, from 2**-127 on; 255 is NaN."""
    powers: NDArray[np.float32] = _F8E8M0[exponents]
    return powers


def decode_f8e4m3(stored: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Decodes floats of four exponent bits with a bias of 7 and three mantissa bits.

    The format has no infinities; 127 and 255 are NaN.
    """
    return _F8E4M3[stored]


def _f8e4m3_values() -> NDArray[np.float32]:
    stored = np.arange(128)
    exponent, mantissa = stored >> 3, stored & 7
    positive = np.where(
        exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0)
    )
    positive[127] = np.nan
    return np.concatenate([positive, -positive]).astype(np.float32)


_F8E4M3 = _f8e4m3_values()
_F8E8M0 = np.append(np.ldexp(1.0, np.arange(255) - 127), np.nan).astype(np.float32)
