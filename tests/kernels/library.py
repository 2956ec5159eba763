"""Calls the functions of the library of `ouzel-kernels` by ctypes, without a graph."""

import ctypes
from dataclasses import dataclass

import numpy as np
import ouzel_kernels
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.cells import (
    find_table,
    num_scales,
    pack_encoding,
    pack_rows,
)
from ouzel.backends.openvino.weights.encodings import IQ4_LEVELS, Encoding, Parts

Floats = NDArray[np.float32]

# the levels of kernels/src/level.h; the last one is AMX with tiles in plain C++
LEVELS = ("avx2", "avx_vnni", "avx512_vnni", "amx", "emulated_amx")

E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6)

needs_library = pytest.mark.skipif(
    ouzel_kernels.LIBRARY is None, reason=f"ouzel-kernels: {ouzel_kernels.REASON}"
)


def load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(ouzel_kernels.LIBRARY))
    size, flag, array = ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
    library.ouzel_kernels_level.restype = ctypes.c_char_p
    library.ouzel_kernels_bytes.restype = size
    library.ouzel_kernels_bytes.argtypes = [size, size, flag, flag, flag, flag]
    library.ouzel_kernels_multiply.argtypes = [
        *(ctypes.c_char_p, size, size, flag, flag, flag, flag),
        *(array, size, array, array, array, size, flag, array),
    ]
    library.ouzel_kernels_attend.argtypes = [
        *(ctypes.c_char_p, size, size, size, ctypes.c_float, ctypes.c_float, size, array),
        *(flag, flag),
        *(size, array, array, array, array, size, array, array, size),
        *(array, array, array, array, array),
    ]
    return library


def supported_levels() -> list[str]:
    library = load()
    return [name for name in LEVELS if library.ouzel_kernels_supports(name.encode())]


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix [outputs, inputs], packed, and the same numbers in float64."""

    outputs: int
    inputs: int
    bits: int  # the bits of a value in a cell
    scales: int  # the number of scales that an output has in a cell
    has_offsets: bool
    table: int
    parts: Parts
    weights: NDArray[np.float64]

    def multiply(
        self, level: str, rows: Floats, bias: Floats | None = None, *, may_be_wide: bool = False
    ) -> Floats:
        """Multiplies rows [count, inputs] by the transpose of the matrix."""
        rows = np.ascontiguousarray(rows)
        values, factors = self.parts["values"], self.parts["factors"]
        products = np.full((len(rows), self.outputs), np.nan, np.float32)
        status = load().ouzel_kernels_multiply(
            *(level.encode(), self.outputs, self.inputs),
            *(self.bits, self.scales, self.has_offsets, self.table),
            *(values.ctypes.data, values.nbytes, factors.ctypes.data),
            *(None if bias is None else bias.ctypes.data, rows.ctypes.data, len(rows)),
            *(may_be_wide, products.ctypes.data),
        )
        assert status == 0, f"the library answered {status}"
        return products

    def quantise(self, rows: Floats) -> NDArray[np.float64]:
        """Returns the rows as the kernels round them: int8 with a scale for each group."""
        size = 64 // self.scales
        padded = np.pad(rows, ((0, 0), (0, -self.inputs % size)))
        groups = padded.reshape(len(rows), padded.shape[1] // size, size)
        largest = np.abs(groups).max(axis=2, keepdims=True)
        inverse = np.float32(127) / np.where(largest < 1e-30, np.inf, largest).astype(np.float32)
        levels = np.rint(groups * inverse).astype(np.float64)
        rounded = levels * (largest / np.float32(127))
        exact: NDArray[np.float64] = rounded.reshape(padded.shape)[:, : self.inputs]
        return exact


def _read_numbers(encoding: Encoding, levels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Returns the numbers that codes of `level_bits` bits stand for, without scales and zeros."""
    if encoding.levels == "iq4":
        return IQ4_LEVELS[levels].astype(np.float64)
    if encoding.values == "f4e2m1":
        return np.array(E2M1)[levels]
    numbers = levels.astype(np.float64)
    if encoding.zeros is None:  # two's complement
        numbers[levels >= 1 << (encoding.level_bits - 1)] -= 1 << encoding.level_bits
    return numbers


def make_matrix(
    outputs: int, inputs: int, encoding: Encoding, random: np.random.Generator
) -> PackedMatrix:
    """Makes a random matrix in this encoding; the numbers are exact in f16."""
    num_groups = encoding.num_groups(inputs)
    num_levels = 1 << encoding.level_bits
    levels = random.integers(0, num_levels, (outputs, inputs), np.uint8)
    scales = (random.integers(1, 2**8, (outputs, num_groups)) / 2**12).astype(np.float32)
    parts: Parts = {"scales": scales}
    if encoding.scales == "f8e8m0":
        parts["scales"] = random.integers(110, 130, scales.shape, np.uint8)
        scales = np.ldexp(np.float32(1), parts["scales"].astype(np.int32) - 127)
    numbers = _read_numbers(encoding, levels)
    if encoding.zeros is not None:
        # near the middle, as offsets have 11 bits
        middle = num_levels // 2
        parts["zeros"] = random.integers(middle - 7, middle + 8, scales.shape, np.uint8)
        numbers = numbers - np.repeat(parts["zeros"], inputs // num_groups, axis=1)
    if encoding.values == "i8":
        parts["values"] = numbers.astype(np.int8)
    elif encoding.values == "u8":
        parts["values"] = levels
    else:
        parts["values"] = levels[:, ::2] | levels[:, 1::2] << np.uint8(4)
    weights = numbers * np.repeat(scales, inputs // num_groups, axis=1)
    return pack_matrix(encoding, parts, weights)


def pack_matrix(encoding: Encoding, parts: Parts, weights: NDArray[np.float64]) -> PackedMatrix:
    """Packs the parts of a matrix; `weights` are the same numbers."""
    outputs, inputs = weights.shape
    packed = pack_encoding(encoding)
    return PackedMatrix(
        outputs,
        inputs,
        packed.value_bits,
        num_scales(packed),
        packed.zeros is not None,
        find_table(packed),
        pack_rows(encoding, parts),
        weights,
    )
