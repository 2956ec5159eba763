"""The tensors of a GGUF file, a few rows at a time."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.compress import in_order
from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.backends.openvino.weights.gguf_blocks import READERS
from ouzel.backends.openvino.weights.safetensors import chunk_rows, to_float32
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.errors import ModelLoadError
from ouzel.gguf.file import TensorLocation, read_gguf
from ouzel.gguf.tensors import StoredTensor, tensors_of

_PLAIN: dict[str, np.dtype[Any]] = {  # Any: one of three element types
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}
Number = TypeVar("Number", bound=np.generic)
# Gather decompresses them as a whole, for good.
_NOT_GATHERED = {"MXFP4"}
_EMBEDDING = "model.embed_tokens.weight"


class GgufCheckpoint:
    """Implements `Tensors`."""

    def __init__(self, paths: list[Path]) -> None:
        self._source = paths[0]
        self._tensors = tensors_of(read_gguf(paths))

    def names(self) -> Iterable[str]:
        return self._tensors

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        kind = self._locate(tensor).location.block_type.name
        if kind in _PLAIN or (kind in _NOT_GATHERED and tensor.name == _EMBEDDING):
            return None
        return READERS[kind].encoding

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        stored = self._locate(tensor)
        pieces = _parts(stored.location, stored.head_dim or 1)
        if stored.every_other is not None:
            pieces = map(_alternating, pieces, _parts(stored.every_other, 1))
        return in_order(pieces, stored.row_order)

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        stored = self._locate(tensor)
        if (kind := stored.location.block_type.name) in _PLAIN:
            rows = _plain_rows(stored)
        else:
            rows = (decode(READERS[kind].encoding, parts) for parts in self.parts(tensor))
        for chunk in rows:
            yield chunk + np.float32(stored.shift) if stored.shift else chunk

    def _locate(self, tensor: Tensor) -> StoredTensor:
        """Dimensions of 1 make no difference: GGUF drops them. What transformers has transposed is not so here."""
        stored = self._tensors.get(tensor.name)
        if stored is None:
            raise ModelLoadError(f"{self._source}: it has no tensor that would be {tensor.name} in transformers")
        location = stored.location
        if _shape_of(stored) != _wanted_shape(tensor):
            raise ModelLoadError(
                f"{location.path}: tensor {stored.name} has the shape {list(location.shape)}, "
                f"but its metadata asks for {list(tensor.shape)}"
            )
        if location.block_type.name not in _PLAIN and location.block_type.name not in READERS:
            raise ModelLoadError(
                f"{location.path}: tensor {stored.name} is stored as {location.block_type.name}; "
                f"supported are {', '.join([*_PLAIN, *READERS])}"
            )
        return stored


def _wanted_shape(tensor: Tensor) -> tuple[int, ...]:
    *outer, rows, columns = (1, 1, *tensor.shape)
    return _without_ones((*outer, columns, rows) if tensor.is_transposed else tensor.shape)


def _shape_of(stored: StoredTensor) -> tuple[int, ...]:
    shape = list(stored.location.shape)
    if stored.every_other is not None:
        shape[-1 if _is_bias(stored) else -2] *= 2
    return _without_ones(tuple(shape))


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _is_bias(stored: StoredTensor) -> bool:
    return stored.name.endswith(".bias")


def _alternating(first: Parts, second: Parts) -> Parts:
    return {name: _by_turns(part, second[name], axis=1) for name, part in first.items()}


def _by_turns(first: NDArray[Number], second: NDArray[Number], axis: int) -> NDArray[Number]:
    """Joins [R, C] to [2 R, C] for axis 1, to [R, 2 C] for axis 2."""
    joined = np.stack([first, second], axis)
    return joined.reshape(-1, first.shape[1] if axis == 1 else 2 * first.shape[1])


def _parts(location: TensorLocation, unit: int) -> Iterator[Parts]:
    read = READERS[location.block_type.name].read
    for raw in _chunks(location, unit):
        yield read(raw.reshape(len(raw), -1, location.block_type.num_bytes))


def _plain_rows(stored: StoredTensor) -> Iterator[NDArray[np.float32]]:
    """Gives a vector as one row; where its elements are of heads they are brought into order, too."""
    rows = _floats(stored.location, stored.head_dim or 1)
    if stored.every_other is not None:
        axis = 2 if _is_bias(stored) else 1
        for first, second in zip(rows, _floats(stored.every_other, 1), strict=True):
            yield _by_turns(first, second, axis)
        return
    if stored.row_order is None:
        yield from rows
        return
    is_vector = len(stored.location.shape) == 1
    columns: Iterator[Parts] = ({"values": chunk.T if is_vector else chunk} for chunk in rows)
    for parts in in_order(columns, stored.row_order):
        values = parts["values"].astype(np.float32, copy=False)
        yield values.T if is_vector else values


def _floats(location: TensorLocation, unit: int) -> Iterator[NDArray[np.float32]]:
    kind = location.block_type.name
    for raw in _chunks(location, unit):
        yield to_float32(raw.reshape(-1).view(_PLAIN[kind]), kind).reshape(len(raw), location.shape[-1])


def _chunks(location: TensorLocation, unit: int) -> Iterator[NDArray[np.uint8]]:
    """Gives [some rows, bytes of a row], whole units of so many rows."""
    num_rows = math.prod(location.shape[:-1])
    rows_per_chunk = max(1, chunk_rows(location.shape[-1]) // unit) * unit
    with location.path.open("rb") as file:
        file.seek(location.offset)
        for start in range(0, num_rows, rows_per_chunk):
            count = min(rows_per_chunk, num_rows - start)
            yield np.fromfile(file, np.uint8, count * location.row_bytes).reshape(count, location.row_bytes)
