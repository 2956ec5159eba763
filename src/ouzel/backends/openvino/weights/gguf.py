"""Reads the tensors of a GGUF file, a few rows at a time."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.compress import reorder_rows
from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.backends.openvino.weights.gguf_blocks import BLOCK_READERS
from ouzel.backends.openvino.weights.gguf_grids import GRID_READERS
from ouzel.backends.openvino.weights.safetensors import chunk_rows, to_float32
from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.errors import ModelLoadError
from ouzel.gguf.file import TensorLocation, read_gguf
from ouzel.gguf.projector_tensors import name_projector_tensors
from ouzel.gguf.tensors import Piece, StoredTensor, name_gguf_tensors
from ouzel.observability.progress import advance_stage

PLAIN: dict[str, np.dtype[Any]] = {  # Any: one of three element types
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}
READERS = BLOCK_READERS | GRID_READERS
Number = TypeVar("Number", bound=np.generic)
# The runtime's Gather decompresses such an embedding as a whole and keeps the result.
_NOT_GATHERED = {"MXFP4"}
_EMBEDDING = "model.embed_tokens.weight"


class GgufCheckpoint:
    """Reads the files of a language model, and of its vision encoder; implements `Tensors`."""

    def __init__(self, paths: list[Path], encoders: Sequence[Path] = ()) -> None:
        self._source = paths[0]
        self._tensors = name_gguf_tensors(read_gguf(paths))
        for path in encoders:
            self._tensors |= name_projector_tensors(read_gguf([path]))

    @property
    def block_types(self) -> list[str]:
        """Returns the names of all block types in the file."""
        return sorted(set().union(*(stored.block_types for stored in self._tensors.values())))

    def names(self) -> Iterable[str]:
        return self._tensors

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        stored = self._locate(tensor)
        kind = stored.location.block_type.name
        if kind in PLAIN or (kind in _NOT_GATHERED and tensor.name == _EMBEDDING):
            return None
        encoding = READERS[kind].encoding
        return encoding if _keeps_blocks(stored, encoding) else None

    def stored_form(self, tensor: Tensor) -> StoredForm | None:
        kinds = self._locate(tensor).block_types
        if kinds & PLAIN.keys():
            return None
        return StoredForm(" and ".join(sorted(kinds)), max(READERS[kind].bits for kind in kinds))

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        stored = self._locate(tensor)
        pieces: Iterator[Parts] = chain.from_iterable(
            read_blocks(piece.location) for piece in stored.pieces
        )
        if stored.every_other is not None:
            pieces = map(_alternating, pieces, read_blocks(stored.every_other))
        for parts in reorder_rows(pieces, stored.change.row_order):
            yield {
                name: _blocks_in_order(part, stored.change.column_blocks)
                for name, part in parts.items()
            }

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        return changed_rows(self._locate(tensor))

    def _locate(self, tensor: Tensor) -> StoredTensor:
        """Returns the stored tensor after checks of its shape and type.

        Dimensions of 1 make no difference: GGUF drops them. A tensor that transformers stores
        transposed is not transposed in GGUF. Raises ModelLoadError.
        """
        stored = self._tensors.get(tensor.name)
        if stored is None:
            raise ModelLoadError(
                f"{self._source} has no tensor for {tensor.name} (its name in transformers)"
            )
        location = stored.location
        if without_ones(stored.shape) != expected_shape(tensor):
            raise ModelLoadError(
                f"{location.path}: tensor {stored.name} has the shape {list(stored.shape)}, "
                f"but its metadata requires {list(tensor.shape)}"
            )
        if unknown := stored.block_types - PLAIN.keys() - READERS.keys():
            raise ModelLoadError(
                f"{location.path}: tensor {stored.name} is stored as {unknown.pop()}; "
                f"supported are {', '.join([*PLAIN, *READERS])}"
            )
        return stored


def expected_shape(tensor: Tensor) -> tuple[int, ...]:
    *outer, rows, columns = (1, 1, *tensor.shape)
    return without_ones((*outer, columns, rows) if tensor.is_transposed else tensor.shape)


def without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _alternating(first: Parts, second: Parts) -> Parts:
    return {name: _by_turns(part, second[name], axis=1) for name, part in first.items()}


def _by_turns(first: NDArray[Number], second: NDArray[Number], axis: int) -> NDArray[Number]:
    """Joins two [R, C] by turns: rows to [2 R, C] for axis 1, columns to [R, 2 C] for axis 2."""
    joined = np.stack([first, second], axis)
    return joined.reshape(-1, first.shape[1] if axis == 1 else 2 * first.shape[1])


def _keeps_blocks(stored: StoredTensor, encoding: Encoding) -> bool:
    """Tells whether the change only moves rows, and columns in whole groups."""
    blocks, columns = stored.change.column_blocks, stored.shape[-1]
    is_whole = blocks is None or columns // len(blocks) % max(encoding.group_size, 2) == 0
    return (
        is_whole
        and len(stored.block_types) == 1
        and not any(piece.is_transposed for piece in stored.pieces)
    )


def _blocks_in_order(part: NDArray[Number], order: tuple[int, ...] | None) -> NDArray[Number]:
    if order is None:
        return part
    blocks = part.reshape(len(part), len(order), -1)
    return blocks[:, list(order)].reshape(part.shape)


def read_blocks(location: TensorLocation) -> Iterator[Parts]:
    read = READERS[location.block_type.name].read
    for raw in read_bytes(location):
        yield read(raw.reshape(len(raw), -1, location.block_type.num_bytes))


def changed_rows(stored: StoredTensor) -> Iterator[NDArray[np.float32]]:
    """Yields the rows as float32; a vector is one row, whose elements are reordered like rows."""
    rows: Iterator[NDArray[np.float32]] = chain.from_iterable(map(_piece_rows, stored.pieces))
    if stored.every_other is not None:
        axis = 2 if stored.name.endswith(".bias") else 1
        rows = (
            _by_turns(first, second, axis)
            for first, second in zip(rows, read_floats(stored.every_other), strict=True)
        )
    if stored.change.row_order is not None:
        rows = _rows_in_order(
            rows, stored.change.row_order, is_vector=len(stored.location.shape) == 1
        )
    for chunk in rows:
        values = _blocks_in_order(chunk, stored.change.column_blocks)
        if stored.change.is_rate:
            values = np.log(-values)
        yield values + np.float32(stored.shift) if stored.shift else values


def _rows_in_order(
    rows: Iterator[NDArray[np.float32]], order: tuple[int, ...], *, is_vector: bool
) -> Iterator[NDArray[np.float32]]:
    columns: Iterator[Parts] = ({"values": chunk.T if is_vector else chunk} for chunk in rows)
    for parts in reorder_rows(columns, order):
        values = parts["values"].astype(np.float32, copy=False)
        yield values.T if is_vector else values


def _piece_rows(piece: Piece) -> Iterator[NDArray[np.float32]]:
    if piece.is_transposed:
        yield np.concatenate(list(read_floats(piece.location))).T
    else:
        yield from read_floats(piece.location)


def read_floats(location: TensorLocation) -> Iterator[NDArray[np.float32]]:
    kind = location.block_type.name
    if kind not in PLAIN:
        yield from (decode(READERS[kind].encoding, parts) for parts in read_blocks(location))
        return
    for raw in read_bytes(location):
        yield to_float32(raw.reshape(-1).view(PLAIN[kind]), kind).reshape(
            len(raw), location.shape[-1]
        )


def read_bytes(location: TensorLocation) -> Iterator[NDArray[np.uint8]]:
    """Yields [some rows, bytes of a row]."""
    num_rows, rows_per_chunk = math.prod(location.shape[:-1]), chunk_rows(location.shape[-1])
    with location.path.open("rb") as file:
        file.seek(location.offset)
        for start in range(0, num_rows, rows_per_chunk):
            count = min(rows_per_chunk, num_rows - start)
            yield np.fromfile(file, np.uint8, count * location.row_bytes).reshape(
                count, location.row_bytes
            )
            advance_stage(count * location.row_bytes)
