"""Decodes rows of a graph's matrix to float32, also of a packed matrix (cells.py)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.cells import (
    BLOCK_ROWS,
    NO_TABLE,
    cell_bytes,
    find_table,
    num_scales,
)
from ouzel.backends.openvino.weights.decoding import F4E2M1, decode
from ouzel.backends.openvino.weights.encodings import IQ4_LEVELS, Encoding, Parts
from ouzel.backends.openvino.weights.source import Matrix

_PIECE_NUMBERS = 2**22  # numbers decoded at once

Floats = NDArray[np.float32]


def decode_rows(matrix: Matrix, begin: int, end: int) -> Floats:
    """Returns the rows from `begin` to `end` of a matrix [rows, columns] as float32.

    In a packed matrix `begin` is a multiple of BLOCK_ROWS.
    """
    if not matrix.encoding.is_packed:
        own = {name: part[begin:end] for name, part in matrix.parts.items()}
        return decode(matrix.encoding, own)
    blocks = slice(begin // BLOCK_ROWS, -(-end // BLOCK_ROWS))
    own = {name: part[blocks] for name, part in matrix.parts.items()}
    return unpack_rows(matrix.encoding, own)[: end - begin, : matrix.shape[-1]]


def decode_pieces(matrix: Matrix) -> Iterator[tuple[int, Floats]]:
    """Yields the first row's number and the rows of each piece of a matrix [rows, columns]."""
    num_rows, num_columns = matrix.shape
    step = max(_PIECE_NUMBERS // num_columns // BLOCK_ROWS, 1) * BLOCK_ROWS
    for begin in range(0, num_rows, step):
        yield begin, decode_rows(matrix, begin, min(begin + step, num_rows))


def unpack_rows(encoding: Encoding, parts: Parts) -> Floats:
    """Returns [rows, columns] of whole blocks of cells, with the padding of both."""
    num_blocks = len(parts["values"])
    cells: NDArray[np.uint8] = (
        parts["values"].view(np.uint8).reshape(num_blocks, -1, cell_bytes(encoding))
    )
    scales, cells = _read_header(encoding, cells)
    offsets: Floats | None = None
    if encoding.zeros is not None:
        offsets, cells = _read_header(encoding, cells)
    levels = _read_levels(encoding, np.ascontiguousarray(cells))
    by_group = levels.reshape(*scales.shape, -1) * scales[..., None]
    if offsets is not None:
        by_group += offsets[..., None]
    factors = parts["factors"].astype(np.float32).reshape(-1, 1)
    rows: Floats = by_group.reshape(len(levels), -1) * factors
    return rows


def _read_header(encoding: Encoding, cells: NDArray[np.uint8]) -> tuple[Floats, NDArray[np.uint8]]:
    """Returns the f16 at the beginning of each cell, [rows, groups], and the rest of the cells."""
    per_cell = num_scales(encoding)
    num_bytes = per_cell * BLOCK_ROWS * 2
    numbers = np.ascontiguousarray(cells[:, :, :num_bytes]).view(np.float16)
    by_cell = numbers.reshape(*cells.shape[:2], per_cell, BLOCK_ROWS).transpose(0, 3, 1, 2)
    rows = by_cell.reshape(len(cells) * BLOCK_ROWS, -1).astype(np.float32)
    return rows, cells[:, :, num_bytes:]


def _read_levels(encoding: Encoding, cells: NDArray[np.uint8]) -> Floats:
    """Returns the levels of values without headers, [rows, columns], minus the middle."""
    bits = encoding.value_bits
    words = cells.view(np.uint32).reshape(*cells.shape[:2], 2, -1, BLOCK_ROWS // 2)
    if bits == 4:
        places = _order_nibbles(_order_rows(words))
        if find_table(encoding) == NO_TABLE:
            return places.astype(np.float32) - np.float32(8)
        table = IQ4_LEVELS.astype(np.float32) if encoding.levels == "iq4" else 2 * F4E2M1
        return table[places]
    if bits == 6:
        words = _join_bits(words)
    values = np.ascontiguousarray(_order_rows(words)).view(np.uint8)
    return values.astype(np.float32) - np.float32(1 << (bits - 1))


def _join_bits(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Returns words of four values of the vectors of low and high bits of six-bit values."""
    low, high = words[..., :8, :], words[..., 8:, :]
    joined = np.empty((*words.shape[:3], 16, words.shape[4]), np.uint32)
    four_low, two_low = np.uint32(0x0F0F0F0F), np.uint32(0x03030303)
    joined[..., 0::2, :] = low & four_low
    joined[..., 1::2, :] = low >> np.uint32(4) & four_low
    for index in range(4):
        top = high >> np.uint32(2 * index) & two_low
        joined[..., index::4, :] |= top << np.uint32(4)
    return joined


def _order_rows(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Returns [rows, words] of [blocks, cells, tiles, vectors, outputs]."""
    by_row = words.transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(by_row).reshape(len(words) * BLOCK_ROWS, -1)


def _order_nibbles(words: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Returns the values of four bits, [rows, columns]; of eight, cells have ae, bf, cg, dh."""
    quads = words.view(np.uint8).reshape(len(words), -1, 1, 4)
    eights = np.concatenate([quads & np.uint8(15), quads >> np.uint8(4)], axis=2)
    return eights.reshape(len(words), -1)
