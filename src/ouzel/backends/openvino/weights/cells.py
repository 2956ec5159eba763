"""Packs matrices of four bits into cells, the layout that the kernels of `ouzel-kernels` multiply.

A cell has 32 rows x 64 columns of a matrix: scales, offsets if the encoding has zero points, and
values. kernels/src/cells.h defines its bytes. A packed matrix of R rows, padded to blocks of 32,
has these parts:

    values   u8 [R / 32, bytes of a block]   the cells of a block, one after the other
    factors  f32 [R / 32, 32]                a power of two for each row, which its scales are
                                             divided by

    w = ((value - 8) * scale + offset) * factor        offset = (8 - zero) * scale

Scales and offsets are f16: by the factor the largest number of a row is in [1, 2).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import Encoding, Parts, Zeros

BLOCK_ROWS = 32
CELL_COLUMNS = 64
VALUES_BYTES = BLOCK_ROWS * CELL_COLUMNS // 2
_EIGHTS = 0x88  # two values of 0, stored plus 8


def fits_cells(encoding: Encoding, columns: int) -> bool:
    """Tells whether a matrix in this encoding can be packed."""
    size = encoding.group_size
    has_groups = size == 0 or size == CELL_COLUMNS // 2 or size % CELL_COLUMNS == 0
    return encoding.values in ("i4", "u4") and has_groups and columns % 2 == 0


def pack_encoding(encoding: Encoding) -> Encoding:
    """Returns the packed form of the encoding: scales and offsets are f16."""
    zeros: Zeros | None = None if encoding.zeros is None else "f16"
    return replace(encoding, scales="f16", zeros=zeros, is_packed=True)


def num_scales(encoding: Encoding) -> int:
    """Returns the scales of a row in a cell: 2 for groups of 32 columns, else 1."""
    return 2 if encoding.group_size == CELL_COLUMNS // 2 else 1


def cell_bytes(encoding: Encoding) -> int:
    header = num_scales(encoding) * BLOCK_ROWS * 2
    return header * (1 if encoding.zeros is None else 2) + VALUES_BYTES


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
    values = parts["values"].view(np.uint8)
    flip = np.uint8(_EIGHTS if encoding.values == "i4" else 0)
    rows, row_bytes = num_blocks(len(values)) * BLOCK_ROWS, -(-values.shape[1] // 32) * 32
    padded = np.full((rows, row_bytes), _EIGHTS, np.uint8)
    np.bitwise_xor(values, flip, out=padded[: len(values), : values.shape[1]])
    scales = _widen_groups(encoding, parts["scales"].astype(np.float32), row_bytes * 2)
    tables = [scales]
    if encoding.zeros is not None:
        zeros = _widen_groups(encoding, parts["zeros"].astype(np.float32), row_bytes * 2)
        tables.append((np.float32(8) - zeros) * scales)
    factors = _row_factors(tables, rows)
    header = np.concatenate([_pack_scales(encoding, table, factors) for table in tables], axis=2)
    cells = np.concatenate([header, _pack_values(padded)], axis=2)
    return {
        "values": cells.reshape(len(cells), -1),
        "factors": factors.reshape(-1, BLOCK_ROWS),
    }


def _pack_values(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns [blocks, cells, VALUES_BYTES] of [rows, columns / 2].

    Of eight columns a to h the rows have the bytes ab, cd, ef, gh, and the cells ae, bf, cg, dh.
    """
    ab, cd, ef, gh = (values[:, index::4] for index in range(4))
    eights = np.empty((*ab.shape, 4), np.uint8)
    low, high = np.uint8(15), np.uint8(0xF0)
    eights[..., 0] = (ab & low) | (ef << np.uint8(4))
    eights[..., 1] = (ab >> np.uint8(4)) | (ef & high)
    eights[..., 2] = (cd & low) | (gh << np.uint8(4))
    eights[..., 3] = (cd >> np.uint8(4)) | (gh & high)
    by_row = eights.view(np.uint32).reshape(-1, 2, BLOCK_ROWS // 2, values.shape[1] // 32, 8)
    cells = np.ascontiguousarray(by_row.transpose(0, 3, 1, 4, 2))
    return cells.view(np.uint8).reshape(len(cells), cells.shape[1], VALUES_BYTES)


def _widen_groups(
    encoding: Encoding, groups: NDArray[np.float32], columns: int
) -> NDArray[np.float32]:
    """Returns [rows, columns / 64 * scales of a cell]: numbers of large groups are repeated."""
    wanted = columns // CELL_COLUMNS * num_scales(encoding)
    if encoding.group_size in (0, CELL_COLUMNS // 2):
        repeats = wanted if encoding.group_size == 0 else 1
    else:
        repeats = encoding.group_size // CELL_COLUMNS
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
