"""Packs matrices of integers into cells, the layout that the kernels of `ouzel-kernels` multiply.

A cell has 32 rows x 64 columns of a matrix: scales, offsets if the encoding has zero points, and
values of 4, 6 or 8 bits. kernels/src/cells.h defines its bytes. A packed matrix of R rows, padded
to blocks of 32, has these parts:

    values   u8 [R / 32, bytes of a block]   the cells of a block, one after the other
    factors  f32 [R / 32, 32]                a power of two for each row, which its scales are
                                             divided by

    w = ((value - middle) * scale + offset) * factor

Values of four bits may be places in a table: then the value is the number in the table, and the
middle 128. Else the middle is half of the number of levels: 8, 32 or 128. Scales and offsets are
f16: by the factor the largest number of a row is in [1, 2). An offset is (center - zero) * scale,
where the center is the level that is stored as the middle: 8 with four bits, else the middle of the
levels that the row has, which keeps offsets small.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import (
    IQ4_LEVELS,
    Encoding,
    Parts,
    Zeros,
    pack_nibbles,
)

BLOCK_ROWS = 32
CELL_COLUMNS = 64
_INTEGERS = ("i4", "u4", "i8", "u8")
_KINDS = ((4, 1), (4, 2), (4, 4), (6, 2), (6, 4), (8, 1), (8, 2))  # bits, scales of a row in a cell
_KINDS_BY_TABLE = ((4, 2), (4, 4))
NO_TABLE, _IQ4_TABLE, _E2M1_TABLE = range(3)  # the numbers of the tables in cells.h
_PLACES = np.zeros(256, np.uint8)  # the places in the table of IQ4, by the byte of a level
_PLACES[IQ4_LEVELS.view(np.uint8)] = np.arange(16)
_EIGHTS = 0x88  # two values of 0, stored plus 8


def fits_cells(encoding: Encoding, columns: int) -> bool:
    """Tells whether a matrix in this encoding can be packed."""
    size = encoding.group_size
    has_groups = size in (0, 16, 32) or size % CELL_COLUMNS == 0
    is_whole = columns % 2 == 0 or encoding.values in ("i8", "u8")  # two values to a byte, or one
    is_known = encoding.values in _INTEGERS or find_table(encoding) != NO_TABLE
    return is_known and has_groups and is_whole and _find_cell_bits(encoding) is not None


def find_table(encoding: Encoding) -> int:
    """Returns the number of the table whose places the values are."""
    if encoding.values == "f4e2m1":
        return _E2M1_TABLE
    return _IQ4_TABLE if encoding.levels == "iq4" else NO_TABLE


def _find_cell_bits(encoding: Encoding) -> int | None:
    """Returns the smallest bits of a value that the kernels know for values like these."""
    kinds = _KINDS if find_table(encoding) == NO_TABLE else _KINDS_BY_TABLE
    for bits, scales in kinds:
        if bits >= encoding.level_bits and scales == num_scales(encoding):
            return bits
    return None


def pack_encoding(encoding: Encoding) -> Encoding:
    """Returns the packed form of the encoding: scales and offsets are f16."""
    zeros: Zeros | None = None if encoding.zeros is None else "f16"
    bits = _find_cell_bits(encoding)
    assert bits is not None, "the encoding fits"
    used_bits = bits if encoding.used_bits else 0
    return replace(encoding, scales="f16", zeros=zeros, is_packed=True, used_bits=used_bits)


def num_scales(encoding: Encoding) -> int:
    """Returns the scales of a row in a cell: for groups of 16, 32, and 64 columns or more."""
    size = encoding.group_size or CELL_COLUMNS
    return CELL_COLUMNS // min(size, CELL_COLUMNS)


def cell_bytes(encoding: Encoding) -> int:
    """Returns the bytes of a cell of a packed encoding."""
    header = num_scales(encoding) * BLOCK_ROWS * 2
    values = BLOCK_ROWS * CELL_COLUMNS * encoding.value_bits // 8
    return header * (1 if encoding.zeros is None else 2) + values


def num_blocks(rows: int) -> int:
    return -(-rows // BLOCK_ROWS)


def empty_cells(encoding: Encoding, rows: int, columns: int) -> Parts:
    """Returns the parts of a packed matrix of zeros, without touching their memory."""
    num_cells = -(-columns // CELL_COLUMNS)
    return {
        "values": np.zeros((num_blocks(rows), num_cells * cell_bytes(encoding)), np.uint8),
        "factors": np.zeros((num_blocks(rows), BLOCK_ROWS), np.float32),
    }


def cut_into_blocks(pieces: Iterable[Parts], blocks_at_once: int) -> Iterator[Parts]:
    """Yields the rows of all pieces in pieces of whole blocks; the last one may end early."""
    step = blocks_at_once * BLOCK_ROWS
    waiting: list[Parts] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(len(each["values"]) for each in waiting) < step:
            continue
        whole = _join(waiting)
        end = len(whole["values"]) // step * step
        for begin in range(0, end, step):
            yield {name: part[begin : begin + step] for name, part in whole.items()}
        waiting = [{name: part[end:] for name, part in whole.items()}]
    if waiting and len((rest := _join(waiting))["values"]):
        yield rest


def _join(pieces: list[Parts]) -> Parts:
    return {name: np.concatenate([each[name] for each in pieces]) for name in pieces[0]}


def pack_rows(encoding: Encoding, parts: Parts) -> Parts:
    """Packs rows in `encoding`, which is not packed; rows are padded to whole blocks."""
    rows = num_blocks(len(parts["values"])) * BLOCK_ROWS
    values, centers = _pack_values(encoding, parts["values"].view(np.uint8), rows)
    scales = _widen_groups(encoding, _read_scales(encoding, parts), values.shape[1])
    numbers = [scales]
    if encoding.zeros is not None:
        zeros = _widen_groups(encoding, parts["zeros"].astype(np.float32), values.shape[1])
        numbers.append((centers - zeros) * scales)
    factors = _row_factors(numbers, rows)
    header = np.concatenate([_pack_scales(encoding, each, factors) for each in numbers], axis=2)
    cells = np.concatenate([header, values], axis=2)
    return {
        "values": cells.reshape(len(cells), -1),
        "factors": factors.reshape(-1, BLOCK_ROWS),
    }


def _read_scales(encoding: Encoding, parts: Parts) -> NDArray[np.float32]:
    """Returns the scales [rows, groups]; the table of E2M1 has twice its numbers."""
    scales = parts["scales"]
    if scales.dtype == np.uint8:  # f8e8m0
        return np.ldexp(np.float32(1), scales.astype(np.int32) - 128).astype(np.float32)
    found = scales.astype(np.float32)
    return found * np.float32(0.5) if find_table(encoding) == _E2M1_TABLE else found


def _pack_values(
    encoding: Encoding, values: NDArray[np.uint8], rows: int
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Returns the values of the cells, [blocks, cells, bytes], and the centers [rows, 1].

    `rows` counts the rows with padding, whose values are 0, like padded columns.
    """
    if encoding.levels == "iq4":
        values = pack_nibbles(_PLACES[values])
    if encoding.values in ("i4", "u4", "f4e2m1") or encoding.levels == "iq4":
        flip = np.uint8(_EIGHTS if encoding.values == "i4" else 0)
        row_bytes = -(-values.shape[1] // 32) * 32
        padded = np.full((rows, row_bytes), _EIGHTS, np.uint8)
        np.bitwise_xor(values, flip, out=padded[: len(values), : values.shape[1]])
        return _order_nibbles(padded), np.full((len(values), 1), 8, np.float32)
    bits = pack_encoding(encoding).value_bits
    middle = np.uint8(1 << (bits - 1))
    columns = -(-values.shape[1] // CELL_COLUMNS) * CELL_COLUMNS
    centers = np.zeros((len(values), 1), np.uint8)
    if encoding.values == "u8":
        largest = values.max(axis=1, keepdims=True)
        centers = largest // np.uint8(2) + (largest & np.uint8(1))
    padded = np.full((rows, columns), middle, np.uint8)
    # Sums of bytes wrap around: a value below 0 is at its place after the middle is added.
    np.add(values, middle - centers, out=padded[: len(values), : values.shape[1]])
    return _order_bytes(padded, bits), centers.astype(np.float32)


def _order_nibbles(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns [blocks, cells, bytes] of [rows, columns / 2].

    Of eight columns a to h the rows have the bytes ab, cd, ef, gh, and the cells ae, bf, cg, dh.
    """
    ab, cd, ef, gh = (values[:, index::4] for index in range(4))
    eights = np.empty((*ab.shape, 4), np.uint8)
    low, high = np.uint8(15), np.uint8(0xF0)
    eights[..., 0] = (ab & low) | (ef << np.uint8(4))
    eights[..., 1] = (ab >> np.uint8(4)) | (ef & high)
    eights[..., 2] = (cd & low) | (gh << np.uint8(4))
    eights[..., 3] = (cd >> np.uint8(4)) | (gh & high)
    return _as_cells(_order_words(eights.view(np.uint32)[..., 0], 8))


def _order_bytes(values: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Returns [blocks, cells, bytes] of [rows, columns], values of 6 or 8 bits."""
    operands = _order_words(values.view(np.uint32), 16)
    if bits == 8:
        return _as_cells(operands)
    four_low, two_low = np.uint32(0x0F0F0F0F), np.uint32(0x03030303)
    low = operands & four_low
    low = low[..., 0::2, :] | low[..., 1::2, :] << np.uint32(4)
    top = operands >> np.uint32(4) & two_low
    high = top[..., 0::4, :].copy()
    for index in range(1, 4):
        high |= top[..., index::4, :] << np.uint32(2 * index)
    return _as_cells(np.concatenate([low, high], axis=-2))


def _order_words(words: NDArray[np.uint32], num_vectors: int) -> NDArray[np.uint32]:
    """Returns [blocks, cells, tiles, vectors, outputs] of [rows, cells * vectors]."""
    by_row = words.reshape(-1, 2, BLOCK_ROWS // 2, words.shape[1] // num_vectors, num_vectors)
    return by_row.transpose(0, 3, 1, 4, 2)


def _as_cells(words: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Returns [blocks, cells, bytes] of [blocks, cells, tiles, vectors, outputs]."""
    cells = np.ascontiguousarray(words).view(np.uint8)
    return cells.reshape(*cells.shape[:2], -1)


def _widen_groups(
    encoding: Encoding, groups: NDArray[np.float32], num_cells: int
) -> NDArray[np.float32]:
    """Returns [rows, cells * scales of a cell]: numbers of large groups are repeated."""
    scales = num_scales(encoding)
    wanted = num_cells * scales
    repeats = encoding.group_size * scales // CELL_COLUMNS if encoding.group_size else wanted
    widened = np.repeat(groups, repeats, axis=1)
    return np.pad(widened, ((0, 0), (0, wanted - widened.shape[1])))


def _row_factors(tables: list[NDArray[np.float32]], rows: int) -> NDArray[np.float32]:
    """Returns a power of two for each row, which brings its largest number to [1, 2); or 1."""
    largest = np.max([np.abs(table).max(axis=1) for table in tables], axis=0)
    exponents = np.where(largest > 0, np.frexp(largest)[1] - 1, 0)
    factors = np.ones(rows, np.float32)
    factors[: len(largest)] = np.ldexp(np.float32(1), exponents)
    return factors


def _pack_scales(
    encoding: Encoding, table: NDArray[np.float32], factors: NDArray[np.float32]
) -> NDArray[np.uint8]:
    """Returns [blocks, cells, bytes] of f16."""
    padded = np.zeros((len(factors), table.shape[1]), np.float16)
    padded[: len(table)] = table / factors[: len(table), None]
    by_row = padded.reshape(
        -1, BLOCK_ROWS, table.shape[1] // num_scales(encoding), num_scales(encoding)
    )
    cells = np.ascontiguousarray(by_row.transpose(0, 2, 3, 1))
    return cells.view(np.uint8).reshape(len(cells), cells.shape[1], -1)
