"""Converts the samples of WAV files to float32 in [-1, 1]."""

from collections.abc import Callable
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]


class Encoding(Enum):
    """The encodings of samples. The values are the format tags of WAV files."""

    INTEGERS = 0x0001
    FLOATS = 0x0003
    A_LAW = 0x0006
    MU_LAW = 0x0007


SAMPLE_SIZES = {  # bytes of a sample
    Encoding.INTEGERS: (1, 2, 3, 4),
    Encoding.FLOATS: (4, 8),
    Encoding.A_LAW: (1,),
    Encoding.MU_LAW: (1,),
}


def make_converter(encoding: Encoding, sample_bytes: int) -> Callable[[bytes], Samples]:
    """Returns a function from the bytes of whole samples to float32 [samples]."""
    match encoding:
        case Encoding.INTEGERS:
            return _INTEGERS[sample_bytes]
        case Encoding.FLOATS:
            type_ = f"<f{sample_bytes}"
            return lambda data: _clip(np.frombuffer(data, type_))
        case Encoding.A_LAW | Encoding.MU_LAW:
            table = _make_a_law() if encoding is Encoding.A_LAW else _make_mu_law()
            return lambda data: table[np.frombuffer(data, np.uint8)]


def _clip(values: NDArray[np.floating]) -> Samples:
    """Returns the values within [-1, 1]; a NaN becomes 0."""
    samples: Samples = np.nan_to_num(np.clip(values, -1, 1)).astype(np.float32)
    return samples


def _read_unsigned(data: bytes) -> Samples:
    samples = np.frombuffer(data, np.uint8).astype(np.float32)
    samples -= 128
    samples /= 128
    return samples


def _read_16_bits(data: bytes) -> Samples:
    return np.frombuffer(data, "<i2").astype(np.float32) / np.float32(2**15)


def _read_24_bits(data: bytes) -> Samples:
    integers = np.zeros((len(data) // 3, 4), np.uint8)
    integers[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return _read_32_bits(integers.tobytes())


def _read_32_bits(data: bytes) -> Samples:
    return np.frombuffer(data, "<i4").astype(np.float32) / np.float32(2**31)


_INTEGERS = {1: _read_unsigned, 2: _read_16_bits, 3: _read_24_bits, 4: _read_32_bits}


def _make_a_law() -> Samples:
    """Returns the value of each byte in A-law (ITU-T G.711, table 1).

    A byte is a sign, three bits of exponent and four of mantissa; its even bits are inverted.
    """
    codes = np.arange(256) ^ 0x55
    exponents, mantissas = codes >> 4 & 7, codes & 15
    sizes = np.where(
        exponents == 0, 2 * mantissas + 1, (2 * mantissas + 33) << np.maximum(exponents - 1, 0)
    )
    return (np.where(codes & 0x80, sizes, -sizes) / 4096).astype(np.float32)


def _make_mu_law() -> Samples:
    """Returns the value of each byte in mu-law (ITU-T G.711, table 2), whose bits are inverted."""
    codes = np.arange(256) ^ 0xFF
    exponents, mantissas = codes >> 4 & 7, codes & 15
    sizes = ((2 * mantissas + 33) << exponents) - 33
    return (np.where(codes & 0x80, -sizes, sizes) / 8192).astype(np.float32)
