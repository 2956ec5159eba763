"""Parts of an encoding become float32 again, where what is stored compressed is to be compressed otherwise."""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import Encoding, Parts, unpack_nibbles

# The levels of four-bit floats with two bits of exponent (OCP Microscaling Formats 1.0, E2M1), by their bits.
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def decoded(encoding: Encoding, parts: Parts) -> NDArray[np.float32]:
    """Returns [R, C] of what encodings.py describes; the encoding has scales."""
    levels = _levels(encoding, parts["values"])
    num_rows, columns = levels.shape
    grouped = levels.reshape(num_rows, encoding.num_groups(columns), -1)
    if "zeros" in parts:
        grouped = grouped - parts["zeros"].astype(np.float32)[:, :, None]
    rows = grouped * _scales(encoding, parts["scales"])[:, :, None]
    return rows.reshape(num_rows, columns)


def _levels(encoding: Encoding, values: NDArray[np.generic]) -> NDArray[np.float32]:
    match encoding.values:
        case "u4":
            return unpack_nibbles(values.view(np.uint8)).astype(np.float32)
        case "i4":  # of the four bits the highest counts -8
            return (unpack_nibbles(values.view(np.uint8)) ^ np.uint8(8)).astype(np.float32) - np.float32(8)
        case "f4e2m1":
            return _E2M1[unpack_nibbles(values.view(np.uint8))]
        case "u8" | "i8":
            return values.astype(np.float32)
        case other:
            raise AssertionError(f"{other} is not stored by any checkpoint")


def _scales(encoding: Encoding, scales: NDArray[np.generic]) -> NDArray[np.float32]:
    if encoding.scales == "f8e8m0":  # an exponent, above 127
        powers: NDArray[np.float32] = np.exp2(scales.astype(np.float32) - np.float32(127))
        return powers
    return scales.astype(np.float32)
