"""Converts GGUF's quantised blocks to parts of an encoding, exactly: it moves numbers and never
rounds.

Formats: ggml, ggml-common.h (layout) and ggml-quants.c (meaning of the numbers). `blocks` are [R,
blocks in a row, bytes of a block]. A block has one f16 scale. The types with K have two levels of
scales: 256 values in groups, whose scales are small integers times the scale of the block. For a
group with an offset,

    w = level * scale + offset = (level - zero) * scale    with zero = -offset / scale

A group whose scale is 0 is constant; it becomes level 0, scale -offset, zero 1.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import IQ4_LEVELS, Encoding, Parts, pack_nibbles

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class BlockReader:
    bits: int  # bits of a stored value; the encoding may take more
    encoding: Encoding
    read: Callable[[Bytes], Parts]


def q4_0(blocks: Bytes) -> Parts:
    # Levels are stored plus 8; for four signed bits this flips the highest bit.
    levels = halves(blocks[..., 2:18]) ^ np.uint8(8)
    return {"values": pack_levels(levels), "scales": f16(blocks, 0)}


def q4_1(blocks: Bytes) -> Parts:
    return affine_nibbles(halves(blocks[..., 4:20]), f32(blocks, 0), f32(blocks, 2))


def q5_0(blocks: Bytes) -> Parts:
    levels = halves(blocks[..., 6:22]) | bits(blocks[..., 2:6]) << np.uint8(4)
    return {"values": in_rows(levels.view(np.int8) - np.int8(16)), "scales": f16(blocks, 0)}


def q5_1(blocks: Bytes) -> Parts:
    levels = halves(blocks[..., 8:24]) | bits(blocks[..., 4:8]) << np.uint8(4)
    return affine(levels, f32(blocks, 0), f32(blocks, 2))


def q8_0(blocks: Bytes) -> Parts:
    return {"values": in_rows(blocks[..., 2:34].view(np.int8)), "scales": f16(blocks, 0)}


def q2_k(blocks: Bytes) -> Parts:
    """Reads Q2_K: 16 bytes with a scale and an offset of four bits each, for 16 groups of 16.

    Then come 64 bytes of levels and two f16, the scales of the scales and of the offsets.
    """
    levels = crumbs(blocks[..., 16:80])
    scales = f32(blocks, 80)[..., None] * (blocks[..., :16] & np.uint8(15))
    offsets = -f32(blocks, 82)[..., None] * (blocks[..., :16] >> np.uint8(4))
    return affine_nibbles(levels, in_rows(scales), in_rows(offsets))


def q3_k(blocks: Bytes) -> Parts:
    """Reads Q3_K: 32 bytes of high bits, 64 of low bits, 12 of scales of six bits, and an f16.

    There are 16 groups of 16. Levels are -4 to 3, so the parts have four bits.
    """
    high = blocks[..., None, :32] >> np.arange(8, dtype=np.uint8)[:, None] & np.uint8(1)
    levels = crumbs(blocks[..., 32:96]) | high.reshape(*blocks.shape[:-1], 256) << np.uint8(2)
    scales = f32(blocks, 108)[..., None] * (six_bits_of_q3(blocks[..., 96:108]) - np.float32(32))
    return {
        "values": pack_levels((levels.view(np.int8) - np.int8(4)).view(np.uint8)),
        "scales": in_rows(scales),
    }


def q4_k(blocks: Bytes) -> Parts:
    """Reads Q4_K: two f16, 12 bytes of scales and offsets, 128 of levels.

    Each 32 bytes have 32 levels in the low halves, then 32 in the high halves.
    """
    levels = nibbles_by_32(blocks[..., 16:144])
    return affine_nibbles(levels, *scales_of_k(blocks))


def q5_k(blocks: Bytes) -> Parts:
    """Reads Q5_K: Q4_K with 32 bytes of fifth bits before the levels.

    Bit g of byte i is the fifth bit of value i of group g.
    """
    high = blocks[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & np.uint8(1)
    fifth = high.reshape(*blocks.shape[:-1], 256) << np.uint8(4)
    levels = nibbles_by_32(blocks[..., 48:176]) | fifth
    return affine(levels, *scales_of_k(blocks))


def q6_k(blocks: Bytes) -> Parts:
    """Reads Q6_K: 128 bytes of low halves, 64 of two high bits, 16 scales of eight bits, and an
    f16.

    There are 16 groups of 16.
    """
    halved = (*blocks.shape[:-1], 2)  # values come in two runs of 128
    low = blocks[..., :128].reshape(*halved, 64)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = blocks[..., 128:192].reshape(*halved, 1, 32) >> shifts & np.uint8(3)
    low = np.stack([low & np.uint8(15), low >> np.uint8(4)], axis=-2).reshape(*halved, 4, 32)
    levels = (low | high << np.uint8(4)).view(np.int8) - np.int8(32)
    scales = f32(blocks, 208)[..., None] * blocks[..., 192:208].view(np.int8)
    return {"values": in_rows(levels), "scales": in_rows(scales)}


def iq4_nl(blocks: Bytes) -> Parts:
    return {"values": in_rows(IQ4_LEVELS[halves(blocks[..., 2:18])]), "scales": f16(blocks, 0)}


def iq4_xs(blocks: Bytes) -> Parts:
    """Reads IQ4_XS: an f16, the high two bits of eight scales, their low four bits, and levels.

    The levels are 128 bytes, 16 for each group.
    """
    shifts = np.arange(0, 16, 2, dtype=np.uint16)
    high = np.ascontiguousarray(blocks[..., 2:4]).view("<u2") >> shifts & np.uint16(3)
    low = np.stack([blocks[..., 4:8] & np.uint8(15), blocks[..., 4:8] >> np.uint8(4)], axis=-1)
    small = low.reshape(*blocks.shape[:-1], 8) | high.astype(np.uint8) << np.uint8(4)
    scales = f32(blocks, 0)[..., None] * (small.astype(np.float32) - np.float32(32))
    levels = IQ4_LEVELS[halves(blocks[..., 8:136].reshape(*blocks.shape[:-1], 8, 16))]
    return {"values": in_rows(levels), "scales": in_rows(scales)}


def mxfp4(blocks: Bytes) -> Parts:
    """Reads MXFP4: a scale of eight bits, a power of two, and four-bit floats, as in OpenVINO's
    types.
    """
    return {
        "values": pack_levels(halves(blocks[..., 1:17])),
        "scales": np.ascontiguousarray(blocks[..., 0]),
    }


def halves(packed_levels: Bytes) -> Bytes:
    """Unpacks n bytes to 2 n levels: the low halves, then the high halves."""
    return np.concatenate([packed_levels & np.uint8(15), packed_levels >> np.uint8(4)], axis=-1)


def nibbles_by_32(packed_levels: Bytes) -> Bytes:
    """Unpacks 128 bytes to 256 levels: of each 32 bytes the low halves, then the high halves."""
    runs = packed_levels.reshape(*packed_levels.shape[:-1], 4, 32)
    return halves(runs).reshape(*packed_levels.shape[:-1], 256)


def crumbs(packed_levels: Bytes) -> Bytes:
    """Unpacks 64 bytes to 256 levels of two bits: of each 32 bytes the lowest two bits, then the
    next.
    """
    runs = packed_levels.reshape(*packed_levels.shape[:-1], 2, 1, 32)
    levels = runs >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & np.uint8(3)
    return levels.reshape(*packed_levels.shape[:-1], 256)


def bits(packed_bits: Bytes) -> Bytes:
    return np.unpackbits(packed_bits, axis=-1, bitorder="little")


def six_bits_of_q3(packed_scales: Bytes) -> Floats:
    """Unpacks 16 numbers of six bits.

    8 bytes have the low halves of two numbers each, 4 bytes the two high bits of four numbers each.
    """
    low = halves(packed_scales[..., :8])
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = packed_scales[..., None, 8:12] >> shifts & np.uint8(3)
    small = low | high.reshape(*packed_scales.shape[:-1], 16) << np.uint8(4)
    return small.astype(np.float32)


def scales_of_k(blocks: Bytes) -> tuple[Floats, Floats]:
    """Returns scales and offsets of eight groups of 32, unpacked from six bits each.

    The first four of both have bytes of their own, whose highest two bits belong to the last four.
    """
    first, second, third = blocks[..., 4:8], blocks[..., 8:12], blocks[..., 12:16]
    low6, low4 = np.uint8(63), np.uint8(15)
    top = np.uint8(6), np.uint8(4)
    scales = np.concatenate([first & low6, third & low4 | first >> top[0] << top[1]], axis=-1)
    offsets = np.concatenate(
        [second & low6, third >> np.uint8(4) | second >> top[0] << top[1]], axis=-1
    )
    return (
        in_rows(f32(blocks, 0)[..., None] * scales),
        in_rows(-f32(blocks, 2)[..., None] * offsets),
    )


def f16(blocks: Bytes, position: int) -> NDArray[np.float16]:
    """Reads the f16 at a byte position of each block, [R, blocks]."""
    raw = np.ascontiguousarray(blocks[..., position : position + 2])
    numbers: NDArray[np.float16] = raw.view("<f2")[..., 0]
    return numbers


def f32(blocks: Bytes, position: int) -> Floats:
    """Reads the f16 at a byte position of each block as float32."""
    return f16(blocks, position).astype(np.float32)


def affine(levels: Bytes, scales: Floats, offsets: Floats) -> Parts:
    """Makes the parts of levels [..., C] with scales and offsets [R, G]."""
    constant = scales == 0
    steps = np.where(constant, -offsets, scales)
    steps[steps == 0] = 1  # a group of zeros only
    zeros = np.where(constant, (offsets != 0).astype(np.float32), -offsets / steps)
    grouped = levels.reshape(*scales.shape, -1)
    grouped = np.where(constant[..., None], np.uint8(0), grouped)
    return {"values": in_rows(grouped), "scales": steps, "zeros": zeros}


def affine_nibbles(levels: Bytes, scales: Floats, offsets: Floats) -> Parts:
    parts = affine(levels, scales, offsets)
    return parts | {"values": pack_nibbles(parts["values"].view(np.uint8))}


def in_rows(values: NDArray[Number]) -> NDArray[Number]:
    return np.ascontiguousarray(values).reshape(len(values), -1)


def pack_levels(levels: Bytes) -> Bytes:
    return pack_nibbles(levels.reshape(len(levels), -1))


_IQ4 = Encoding("i8", "f32", group_size=32, used_bits=4, levels="iq4")
BLOCK_READERS = {
    "Q4_0": BlockReader(4, Encoding("i4", "f16", group_size=32), q4_0),
    "Q4_1": BlockReader(4, Encoding("u4", "f32", "f32", 32), q4_1),
    "Q5_0": BlockReader(5, Encoding("i8", "f16", group_size=32, used_bits=5), q5_0),
    "Q5_1": BlockReader(5, Encoding("u8", "f32", "f32", 32, used_bits=5), q5_1),
    "Q8_0": BlockReader(8, Encoding("i8", "f16", group_size=32), q8_0),
    "Q2_K": BlockReader(2, Encoding("u4", "f32", "f32", 16), q2_k),
    "Q3_K": BlockReader(3, Encoding("i4", "f32", group_size=16), q3_k),
    "Q4_K": BlockReader(4, Encoding("u4", "f32", "f32", 32), q4_k),
    "Q5_K": BlockReader(5, Encoding("u8", "f32", "f32", 32, used_bits=5), q5_k),
    "Q6_K": BlockReader(6, Encoding("i8", "f32", group_size=16, used_bits=6), q6_k),
    "IQ4_NL": BlockReader(4, replace(_IQ4, scales="f16"), iq4_nl),
    "IQ4_XS": BlockReader(4, _IQ4, iq4_xs),
    "MXFP4": BlockReader(4, Encoding("f4e2m1", "f8e8m0", group_size=32), mxfp4),
}
