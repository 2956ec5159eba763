"""Checks SentencePiece's table of characters and their replacements (`precompiled_charsmap`).

A u32 has the length of an array of u32, which follows; the replacements come last, each with a zero
byte behind it. The array is a trie on bytes (darts-clone, a double array). A node has bit 31 clear,
an offset, and bit 8 set if a replacement belongs to it. Its child by the byte c is at its place ^
offset ^ c; its replacement's position is at its place ^ offset. The tokenizer's library follows the
array without checks, so files of strangers are checked here.
"""

import struct

import numpy as np
from numpy.typing import NDArray


def is_character_table(content: bytes) -> bool:
    """Tells whether all steps in the table stay within it."""
    if len(content) < 4:
        return False
    [num_bytes] = struct.unpack("<I", content[:4])
    nodes = np.frombuffer(content[4 : 4 + num_bytes // 4 * 4], "<u4")
    replacements = content[4 + num_bytes :]
    if not len(nodes) or num_bytes != nodes.nbytes or replacements[-1:] != b"\0":
        return False
    try:
        replacements.decode()
    except UnicodeDecodeError:
        return False
    return _stays_within(nodes, np.frombuffer(replacements, np.uint8))


def _stays_within(nodes: NDArray[np.uint32], replacements: NDArray[np.uint8]) -> bool:
    is_node = nodes >> 31 == 0
    offsets = (nodes >> 10) << ((nodes & (1 << 9)) >> 6)
    bases = np.arange(len(nodes), dtype=np.uint32) ^ offsets
    if ((bases | 0xFF)[is_node] >= len(nodes)).any():
        return False
    positions = nodes[bases[is_node & (nodes >> 8 & 1 == 1)]] & np.uint32(2**31 - 1)
    if (positions >= len(replacements)).any():
        return False
    return not (replacements[positions] & 0xC0 == 0x80).any()  # no position within a character
