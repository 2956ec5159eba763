"""Encodes matrix rows of float32 in the encoding that the model has in memory.

    w = (values - zeros) * scales

An encoding names the types of values, scales and zeros, and the number of columns that share a
scale. A `group_size` of 0 is a whole row. A matrix of R rows with C columns in G groups has these
parts (of four bits: two values to a byte, the even column in the low half):

    values  [R, C], or [R, C / 2] with two values in a byte
    scales  [R, G]
    zeros   [R, G]

Rows are independent, so a matrix may be compressed a few rows at a time and the pieces
concatenated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from ouzel.config.weights import Width

Values = Literal["f32", "bf16", "u8", "i8", "u4", "i4", "f4e2m1", "nf4"]
Scales = Literal["f32", "f16", "f8e8m0"]
Zeros = Literal["u8", "f16", "f32"]
Levels = Literal["all", "iq4"]
Parts = dict[str, NDArray[np.generic]]

_BITS: dict[str, int] = {
    "f32": 32,
    "bf16": 16,
    "f16": 16,
    "f8e8m0": 8,
    "u8": 8,
    "i8": 8,
    **dict.fromkeys(("u4", "i4", "f4e2m1", "nf4"), 4),
}
AUTO_WIDTH: Width = "int8"
INT4_GROUP_SIZES = (64, 32)  # columns; int8 activations take twice the time with the second size
# levels tried for the extreme value of a group; the levels end at -8
INT4_TARGETS = (-7.3, -8.0, -8.9, -10.0)
SMALLEST_QUICK_GROUP = 32  # the smallest group of quantised activations (compilation.py)
COMPUTED_AT_ONCE = 2**16  # weights; so many stay in the cache of a core


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of a matrix; types have the names that OpenVINO gives them."""

    values: Values
    scales: Scales | None = None
    zeros: Zeros | None = None
    group_size: int = 0
    is_packed: bool = False  # the parts are cells (cells.py)
    used_bits: int = 0  # the bits of a value, if the values use fewer than their type has
    levels: Levels = "all"  # the numbers that values can be; `iq4`: IQ4_LEVELS

    def num_groups(self, columns: int) -> int:
        return columns // self.group_size if self.group_size else 1

    @property
    def value_bits(self) -> int:
        """Returns the bits of a value in memory, without scales and zero points."""
        return self.level_bits if self.is_packed else _BITS[self.values]

    @property
    def level_bits(self) -> int:
        """Returns the bits that a value uses."""
        return self.used_bits or _BITS[self.values]

    def bits_per_value(self, columns: int) -> float:
        """Returns the bits of a value in a row of `columns`, scales and zero points included."""
        if self.is_packed:
            num_tables = 1 if self.zeros is None else 2
            return self.value_bits + 16 * num_tables / min(self.group_size or 64, 64)
        num_shared = sum(_BITS[dtype] for dtype in (self.scales, self.zeros) if dtype is not None)
        return _BITS[self.values] + num_shared / (self.group_size or columns)

    @property
    def description(self) -> str:
        """Describes the encoding, as `i4, f16 scales of 128`, or `bf16` without scales."""
        if self.scales is None:
            return self.values
        columns = f"of {self.group_size}" if self.group_size else "of a row"
        zeros = f", {self.zeros} zero points" if self.zeros else ""
        packed = ", packed" if self.is_packed else ""
        return f"{self._value_name}, {self.scales} scales{zeros} {columns}{packed}"

    @property
    def _value_name(self) -> str:
        if not (self.is_packed and self.used_bits):
            return self.values
        return f"{self.values[0]}{self.used_bits}" if self.levels == "all" else self.levels

    @property
    def is_slow_integer(self) -> bool:
        """Tells whether the runtime would widen these integers instead of multiplying int8
        activations.

        The runtime widens integers with fractional zero points, and groups of 16 (decision 0019).
        """
        is_integer = self.values in ("u8", "i8", "u4", "i4") and not self.is_packed
        return is_integer and (
            self.zeros in ("f16", "f32") or 0 < self.group_size < SMALLEST_QUICK_GROUP
        )


# The levels of IQ4_NL and IQ4_XS (ggml-common.h, kvalues_iq4nl).
IQ4_LEVELS = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8
)
FLOATS_OF_FOUR_BITS = ("f4e2m1", "nf4")
MXFP4 = Encoding("f4e2m1", "f8e8m0", group_size=32)  # OCP's Microscaling Formats
INT8_OF_MXFP4 = Encoding("i8", "f32", group_size=32)  # represents the same numbers
INT8_IN_GROUPS = Encoding("i8", "f32", group_size=64)
_TWICE_F4E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)


def choose_encoding(width: Width, columns: int) -> Encoding:
    """Returns the encoding of rows with this many columns, by the width."""
    match width:
        case "int8":
            return Encoding("u8", "f32", "u8")
        case "int4":
            return Encoding("i4", "f32", group_size=int4_group_size(columns))
        case "bf16" | "f32":
            return Encoding(width)
        case _:
            assert_never(width)


# element types; all others are bytes
_DTYPES = {"f32": np.float32, "bf16": np.uint16, "f16": np.float16, "i8": np.int8}
_HALF_BYTES = {"u4", "i4", "f4e2m1", "nf4"}


def empty_parts(encoding: Encoding, rows: int, columns: int) -> Parts:
    """Returns parts of zeros; the system gives them memory when they are first touched."""
    width = columns // 2 if encoding.values in _HALF_BYTES else columns
    parts: Parts = {"values": np.zeros((rows, width), _DTYPES.get(encoding.values, np.uint8))}
    for name, dtype in (("scales", encoding.scales), ("zeros", encoding.zeros)):
        if dtype is not None:
            parts[name] = np.zeros(
                (rows, encoding.num_groups(columns)), _DTYPES.get(dtype, np.uint8)
            )
    return parts


def int4_group_size(columns: int) -> int:
    """Returns the first size that divides a row; if none does, the whole row is one group."""
    return next((size for size in INT4_GROUP_SIZES if columns % size == 0), columns)


def encoder(encoding: Encoding) -> Callable[[NDArray[np.float32]], Parts]:
    """Returns the function for an encoding from `choose_encoding`, or for INT8_IN_GROUPS."""
    return {
        "u8": encode_int8,
        "i8": encode_int8_in_groups,
        "i4": encode_int4,
        "bf16": encode_bf16,
        "f32": encode_f32,
    }[encoding.values]


def encode_int8(rows: NDArray[np.float32]) -> Parts:
    """Encodes rows as u8 with a scale and a zero point for each row."""
    low = np.minimum(rows.min(axis=1, keepdims=True), 0.0)
    high = np.maximum(rows.max(axis=1, keepdims=True), 0.0)
    scales = np.maximum((high - low) / np.float32(255), np.float32(1e-12))
    zeros = np.rint(-low / scales)
    values = np.empty(rows.shape, np.uint8)
    step = max(1, COMPUTED_AT_ONCE // rows.shape[1])
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        levels = rows[some] / scales[some]
        np.rint(levels, out=levels)
        levels += zeros[some]
        values[some] = np.clip(levels, 0, 255, out=levels)
    return {"values": values, "zeros": zeros.astype(np.uint8), "scales": scales.astype(np.float32)}


def encode_int8_in_groups(rows: NDArray[np.float32]) -> Parts:
    """Encodes rows as i8 with a scale for each group."""
    groups = rows.reshape(len(rows), -1, INT8_IN_GROUPS.group_size)
    scales = np.maximum(np.abs(groups).max(axis=2) / np.float32(127), np.float32(1e-30))
    levels = groups * (1 / scales)[..., None]
    np.rint(levels, out=levels)
    return {"values": levels.astype(np.int8).reshape(rows.shape), "scales": scales}


def encode_int4(rows: NDArray[np.float32]) -> Parts:
    """Encodes rows as i4 with a scale for each group."""
    num_rows, columns = rows.shape
    levels, scales = search_scales(rows.reshape(-1, int4_group_size(columns)))
    return {
        "values": pack_nibbles(levels.reshape(num_rows, columns)),
        "scales": scales.reshape(num_rows, -1),
    }


def search_scales(groups: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Returns levels [groups, size], in two's complement, and scales [groups]."""
    num_groups, size = groups.shape
    levels, scales = np.empty((num_groups, size), np.uint8), np.empty(num_groups, np.float32)
    step = max(1, COMPUTED_AT_ONCE // size)
    for start in range(0, num_groups, step):
        some = slice(start, start + step)
        levels[some], scales[some] = search_some_scales(groups[some])
    return levels, scales


def search_some_scales(
    groups: NDArray[np.float32],
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Tries several levels for the extreme value of each group and takes the best scale.

    The targets are -8, the end with one level more, and levels a little below and above it in size.
    A larger target clips the extreme value and rounds the others less. For levels q the best scale
    is sum(w q) / sum(q q), and its squared error is sum(w w) - sum(w q)^2 / sum(q q), whose second
    term is the gain.
    """
    # A group is a column here, so that operations run along many groups.
    columns = np.ascontiguousarray(groups.T)
    low, high = columns.min(axis=0), columns.max(axis=0)
    extreme = np.where(-low >= high, low, high)
    extreme[extreme == 0] = 1
    gain = np.full_like(extreme, -1)
    scale = np.full_like(extreme, np.nan)  # stays NaN for a group with a weight that is NaN
    levels = np.empty_like(columns)
    for target in INT4_TARGETS:
        to_levels(columns, extreme / np.float32(target), levels)
        product = np.einsum("cg,cg->g", columns, levels)
        square = np.maximum(np.einsum("cg,cg->g", levels, levels), 1)
        is_better = product * product > gain * square
        np.copyto(gain, product * product / square, where=is_better)
        np.copyto(scale, product / square, where=is_better)
    scale[scale == 0] = 1
    return to_levels(columns, scale, levels).astype(np.int8).view(np.uint8).T, scale


def to_levels(
    columns: NDArray[np.float32], scale: NDArray[np.float32], levels: NDArray[np.float32]
) -> NDArray[np.float32]:
    np.multiply(columns, 1 / scale, out=levels)
    np.rint(levels, out=levels)
    return np.clip(levels, -8, 7, out=levels)


def pack_nibbles(levels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Packs the low halves of two columns into a byte."""
    low = levels & np.uint8(15)
    return low[:, 0::2] | (low[:, 1::2] << np.uint8(4))


def unpack_nibbles(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.stack([packed & np.uint8(15), packed >> np.uint8(4)], axis=2).reshape(len(packed), -1)


def int8_of_mxfp4(parts: Parts) -> Parts:
    """Doubles the values, which makes them integers, and halves the scales, 2 ** (f8e8m0 - 127)."""
    exponents = parts["scales"].view(np.uint8).astype(np.int32)
    values = _TWICE_F4E2M1[unpack_nibbles(parts["values"].view(np.uint8))]
    return {"values": values, "scales": np.ldexp(np.float32(1), exponents - 128).astype(np.float32)}


def encode_bf16(rows: NDArray[np.float32]) -> Parts:
    """Rounds to nearest even; bf16 is stored as u16."""
    bits = np.ascontiguousarray(rows).view(np.uint32)
    rounded = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    return {"values": (rounded >> np.uint32(16)).astype(np.uint16)}


def encode_f32(rows: NDArray[np.float32]) -> Parts:
    return {"values": np.ascontiguousarray(rows)}
