"""Converts GGUF's blocks of one to three bits to parts of an encoding, exactly.

Types with IQ store, for each 8 or 4 values, the place of their levels in a grid; signs and scales
are apart. The grids are lists of numbers that ggml's authors found by search (ggml-common.h);
`training/golden/make_grids.py` writes them to gguf_grids.npz. Levels and signs together are
integers of eight bits. `blocks` are [R, blocks in a row, bytes of a block].
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.backends.openvino.weights.gguf_blocks import (
    BlockReader,
    Bytes,
    Floats,
    crumbs,
    f16,
    f32,
    in_rows,
    pack_levels,
)

Levels = NDArray[np.int8]
Integers = NDArray[np.integer[Any]]  # several widths occur

_GRIDS = Path(__file__).with_suffix(".npz")
# Seven stored bits are the signs of seven values; the number of minus signs among eight is even.
_SIGNS = np.array([bits | (bits.bit_count() & 1) << 7 for bits in range(128)], np.uint8)
_SIGN_SHIFTS = np.array([0, 7, 14, 21], np.uint32)
_IQ1_STEPS = 8  # levels in a unit: IQ1 shifts -1, 0 and 1 by an eighth


@cache
def read_grid(name: str) -> Levels:
    """Returns the grid of a block type, [places, values at a place]."""
    with np.load(_GRIDS) as grids:
        packed: Bytes = grids[name]
        levels: Levels = grids[f"{name}.levels"]
    numbers = np.stack([packed & np.uint8(15), packed >> np.uint8(4)], axis=-1)
    return levels[numbers.reshape(len(packed), -1)]


def iq2_xxs(blocks: Bytes) -> Parts:
    """Reads IQ2_XXS: an f16, and for each 32 values four places of a byte, four times seven signs,
    and a scale of four bits.
    """
    words = _words(blocks[..., 2:66], "<u4").reshape(*blocks.shape[:-1], 8, 2)
    places = np.ascontiguousarray(words[..., 0]).view(np.uint8)
    scales = f32(blocks, 0)[..., None] * _half_steps(words[..., 1] >> 28) * np.float32(0.25)
    return _grid_parts("IQ2_XXS", places, _unpack_signs(words[..., 1]), scales)


def iq2_xs(blocks: Bytes) -> Parts:
    """Reads IQ2_XS: an f16, places of nine bits with seven signs each, and scales of four bits."""
    words = _words(blocks[..., 2:66], "<u2")
    scales = f32(blocks, 0)[..., None] * _half_steps(_nibbles(blocks[..., 66:74]))
    return _grid_parts("IQ2_XS", words & 511, _SIGNS[words >> 9], scales * np.float32(0.25))


def iq2_s(blocks: Bytes) -> Parts:
    """Reads IQ2_S: an f16, low bytes of places, signs, the places' high two bits, scales."""
    high = blocks[..., 66:74, None] >> np.arange(0, 8, 2, dtype=np.uint8) & np.uint8(3)
    places = blocks[..., 2:34] | high.reshape(*blocks.shape[:-1], 32).astype(np.uint16) << 8
    scales = f32(blocks, 0)[..., None] * _half_steps(_nibbles(blocks[..., 74:82]))
    return _grid_parts("IQ2_S", places, blocks[..., 34:66], scales * np.float32(0.25))


def iq3_xxs(blocks: Bytes) -> Parts:
    """Reads IQ3_XXS: an f16, places of a byte for each 4 values, then for each 32 values four times
    seven signs and a scale of four bits.
    """
    words = _words(blocks[..., 66:98], "<u4")
    scales = f32(blocks, 0)[..., None] * _half_steps(words >> 28) * np.float32(0.5)
    return _grid_parts("IQ3_XXS", blocks[..., 2:66], _unpack_signs(words), scales)


def iq3_s(blocks: Bytes) -> Parts:
    """Reads IQ3_S: an f16, low bytes of places, their ninth bits, signs, and scales of four
    bits.
    """
    ninth = np.unpackbits(blocks[..., 66:74], axis=-1, bitorder="little")
    places = blocks[..., 2:66] | ninth.astype(np.uint16) << 8
    scales = f32(blocks, 0)[..., None] * _odd(_nibbles(blocks[..., 106:110]))
    return _grid_parts("IQ3_S", places, blocks[..., 74:106], scales)


def iq1_s(blocks: Bytes) -> Parts:
    """Reads IQ1_S: an f16, low bytes of places, and for each 32 values their high three bits, a
    scale of three bits and the sign of the shift.
    """
    words = _words(blocks[..., 34:50], "<u2")
    high = words[..., None] >> np.arange(0, 12, 3, dtype=np.uint16) & np.uint16(7)
    places = blocks[..., 2:34] | high.reshape(*blocks.shape[:-1], 32) << 8
    scales = f32(blocks, 0)[..., None] * _odd(words >> 12 & 7)
    return _shifted_parts(places, np.repeat(words >> 15, 4, axis=-1), scales)


def iq1_m(blocks: Bytes) -> Parts:
    """Reads IQ1_M: low bytes of places, for each 8 values their high three bits and the sign of the
    shift, and four u16: 16 scales of three bits, and an f16 in their highest bits.
    """
    further = _nibbles(blocks[..., 32:48])
    places = blocks[..., :32] | (further & 7).astype(np.uint16) << 8
    words = _words(blocks[..., 48:56], "<u2")
    nibbles = words >> 12 << np.arange(0, 16, 4, dtype=np.uint16)
    whole = np.bitwise_or.reduce(nibbles, axis=-1, keepdims=True)
    small = words[..., None] >> np.arange(0, 12, 3, dtype=np.uint16) & np.uint16(7)
    scales = whole.view(np.float16).astype(np.float32) * _odd(small.reshape(*words.shape[:-1], 16))
    return _shifted_parts(places, further >> 3, scales)


def tq1_0(blocks: Bytes) -> Parts:
    """Reads TQ1_0: five values of -1, 0 and 1 to a byte, and an f16.

    A byte is a fraction of 256 in base 3. The first 32 bytes have the values 0 to 31 in their first
    digits, 32 to 63 in the second, and so on; so do the next 16; the last 4 have four digits.
    """
    runs = []
    for begin, end, num_digits in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
        powers = np.array([3**digit for digit in range(num_digits)], np.uint8)[:, None]
        rests = blocks[..., None, begin:end] * powers  # modulo 256
        digits = rests.astype(np.uint16) * 3 >> 8
        runs.append(digits.reshape(*blocks.shape[:-1], -1).astype(np.uint8))
    return _ternary(np.concatenate(runs, axis=-1), f16(blocks, 52))


def tq2_0(blocks: Bytes) -> Parts:
    """Reads TQ2_0: levels of two bits, one above their values, and an f16."""
    return _ternary(crumbs(blocks[..., :64]), f16(blocks, 64))


def q1_0(blocks: Bytes) -> Parts:
    """Reads Q1_0: an f16, and a bit for each value: -1 or 1."""
    signs = np.unpackbits(blocks[..., 2:18], axis=-1, bitorder="little")
    return _ternary(signs << np.uint8(1), f16(blocks, 0))


def q2_0(blocks: Bytes) -> Parts:
    """Reads Q2_0: an f16, and levels of two bits, one above their values."""
    levels = blocks[..., 2:18, None] >> np.arange(0, 8, 2, dtype=np.uint8) & np.uint8(3)
    return _ternary(levels.reshape(*blocks.shape[:-1], 64), f16(blocks, 0))


def _grid_parts(name: str, places: Integers, signs: Bytes, scales: Floats) -> Parts:
    """Returns the parts of values with signs, of which a byte of `signs` has eight."""
    levels = read_grid(name)[places].reshape(*signs.shape, 8)
    is_negative = np.unpackbits(signs[..., None], axis=-1, bitorder="little").astype(np.bool_)
    return {"values": in_rows(np.where(is_negative, -levels, levels)), "scales": in_rows(scales)}


def _shifted_parts(places: Integers, is_down: Integers, scales: Floats) -> Parts:
    """Returns the parts of levels -1, 0 and 1 that are shifted by an eighth, down or up."""
    levels = read_grid("IQ1_S")[places] * np.int8(_IQ1_STEPS)
    shifts = np.where(is_down != 0, np.int8(-1), np.int8(1))[..., None]
    return {
        "values": in_rows(levels + shifts),
        "scales": in_rows(scales / np.float32(_IQ1_STEPS)),
    }


def _ternary(levels: Bytes, scales: NDArray[np.float16]) -> Parts:
    """Returns the parts of levels that are stored plus 1."""
    return {"values": pack_levels((levels - np.uint8(1)) & np.uint8(15)), "scales": scales}


def _unpack_signs(words: Integers) -> Bytes:
    """Unpacks the signs of 32 values from each word, [..., words] to [..., 4 * words]."""
    signs: Bytes = _SIGNS[words[..., None] >> _SIGN_SHIFTS & 127]
    return signs.reshape(*words.shape[:-1], -1)


def _words(raw: Bytes, dtype: str) -> Integers:
    return np.ascontiguousarray(raw).view(dtype)


def _nibbles(packed: Bytes) -> Bytes:
    """Unpacks bytes to numbers of four bits, the low half first."""
    halves = np.stack([packed & np.uint8(15), packed >> np.uint8(4)], axis=-1)
    return halves.reshape(*packed.shape[:-1], -1)


def _half_steps(numbers: Integers) -> Floats:
    return numbers.astype(np.float32) + np.float32(0.5)


def _odd(numbers: Integers) -> Floats:
    return 2 * numbers.astype(np.float32) + 1


_BY_32, _BY_16 = Encoding("i8", "f32", group_size=32), Encoding("i8", "f32", group_size=16)
GRID_READERS = {
    "IQ1_S": BlockReader(2, Encoding("i8", "f32", group_size=32, used_bits=5), iq1_s),
    "IQ1_M": BlockReader(2, Encoding("i8", "f32", group_size=16, used_bits=5), iq1_m),
    "IQ2_XXS": BlockReader(2, _BY_32, iq2_xxs),
    "IQ2_XS": BlockReader(2, _BY_16, iq2_xs),
    "IQ2_S": BlockReader(2, _BY_16, iq2_s),
    "IQ3_XXS": BlockReader(3, _BY_32, iq3_xxs),
    "IQ3_S": BlockReader(3, Encoding("i8", "f32", group_size=32, used_bits=5), iq3_s),
    "TQ1_0": BlockReader(2, Encoding("i4", "f16", group_size=256), tq1_0),
    "TQ2_0": BlockReader(2, Encoding("i4", "f16", group_size=256), tq2_0),
    "Q1_0": BlockReader(1, Encoding("i4", "f16", group_size=128), q1_0),
    "Q2_0": BlockReader(2, Encoding("i4", "f16", group_size=64), q2_0),
}
