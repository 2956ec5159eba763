"""Matrix rows come as float32 and leave in the encoding that the model keeps them in.

int8   per output channel, asymmetric:  w = (values - zeros) * scales,  values and zeros u8, scales f32 [rows, 1]
int4   per group of input channels, symmetric:  w = values * scales,  values i4 in -8..7, two to a byte (the even
       column in the low half), scales f16 [rows, groups, 1]
bf16   rounded to nearest even, kept as u16
f32    as it is

Rows are independent, so a matrix may be compressed a few rows at a time and the pieces concatenated.
"""

from collections.abc import Callable
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

Encoding = Literal["int8", "int4", "bf16", "f32"]
Parts = dict[str, NDArray[np.generic]]

INT4_GROUP_SIZES = (128, 64, 32)


def int4_group_size(columns: int) -> int:
    """Returns the largest usual group that divides a row; otherwise the whole row is one group."""
    return next((size for size in INT4_GROUP_SIZES if columns % size == 0), columns)


def encoder(encoding: Encoding) -> Callable[[NDArray[np.float32]], Parts]:
    match encoding:
        case "int8":
            return encode_int8
        case "int4":
            return encode_int4
        case "bf16":
            return encode_bf16
        case "f32":
            return encode_f32
        case _:
            assert_never(encoding)


def encode_int8(rows: NDArray[np.float32]) -> Parts:
    low = np.minimum(rows.min(axis=1, keepdims=True), 0.0)
    high = np.maximum(rows.max(axis=1, keepdims=True), 0.0)
    scales = np.maximum((high - low) / np.float32(255), np.float32(1e-12))
    zeros = np.rint(-low / scales)
    levels = rows / scales
    np.rint(levels, out=levels)
    levels += zeros
    np.clip(levels, 0, 255, out=levels)
    return {"values": levels.astype(np.uint8), "zeros": zeros.astype(np.uint8), "scales": scales.astype(np.float32)}


def encode_int4(rows: NDArray[np.float32]) -> Parts:
    num_rows, columns = rows.shape
    group = int4_group_size(columns)
    grouped = rows.reshape(num_rows, columns // group, group)
    # The extreme of each group maps to -8, the end of the range that has one level more.
    extreme = np.take_along_axis(grouped, np.abs(grouped).argmax(axis=2, keepdims=True), axis=2)
    scales = (extreme / np.float32(-8)).astype(np.float16)
    scales[scales == 0] = 1
    levels = np.rint(grouped / scales.astype(np.float32))
    np.clip(levels, -8, 7, out=levels)
    nibbles = levels.astype(np.int8).reshape(num_rows, columns).view(np.uint8) & np.uint8(15)
    return {"values": nibbles[:, 0::2] | (nibbles[:, 1::2] << np.uint8(4)), "scales": scales}


def encode_bf16(rows: NDArray[np.float32]) -> Parts:
    bits = np.ascontiguousarray(rows).view(np.uint32)
    rounded = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    return {"values": (rounded >> np.uint32(16)).astype(np.uint16)}


def encode_f32(rows: NDArray[np.float32]) -> Parts:
    return {"values": np.ascontiguousarray(rows)}
