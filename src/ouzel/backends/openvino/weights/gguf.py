"""The tensors of a GGUF file, a few rows at a time."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.compress import in_order
from ouzel.backends.openvino.weights.decode import decoded
from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.backends.openvino.weights.gguf_blocks import READERS
from ouzel.backends.openvino.weights.safetensors import CHUNK_BYTES, to_float32
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.errors import ModelLoadError
from ouzel.gguf.file import read_gguf
from ouzel.gguf.tensors import StoredTensor, tensors_of

_PLAIN: dict[str, np.dtype[Any]] = {  # Any: one of three element types
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}
# Gather decompresses them as a whole, for good.
_NOT_GATHERED = {"MXFP4"}
_EMBEDDING = "model.embed_tokens.weight"


class GgufCheckpoint:
    """Implements `Tensors`."""

    def __init__(self, paths: list[Path]) -> None:
        self._source = paths[0]
        self._tensors = tensors_of(read_gguf(paths))

    @property
    def main_type(self) -> str:
        """Returns the block type that most of the weights have."""
        sizes: Counter[str] = Counter()
        for stored in self._tensors.values():
            sizes[stored.location.block_type.name] += math.prod(stored.location.shape)
        return max(sizes, key=lambda name: sizes[name], default="")

    def names(self) -> Iterable[str]:
        return self._tensors

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        kind = self._locate(tensor).location.block_type.name
        if kind in _PLAIN or (kind in _NOT_GATHERED and tensor.name == _EMBEDDING):
            return None
        return READERS[kind].encoding

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        stored = self._locate(tensor)
        read = READERS[stored.location.block_type.name].read
        return in_order((read(blocks) for blocks in _blocks(stored)), stored.row_order)

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        stored = self._locate(tensor)
        if (kind := stored.location.block_type.name) in _PLAIN:
            rows = _plain_rows(stored)
        else:
            rows = (decoded(READERS[kind].encoding, parts) for parts in self.parts(tensor))
        for chunk in rows:
            yield chunk + np.float32(stored.shift) if stored.shift else chunk

    def _locate(self, tensor: Tensor) -> StoredTensor:
        """Dimensions of 1 make no difference: GGUF drops them."""
        assert not tensor.is_transposed, "no matrix is stored transposed here"
        stored = self._tensors.get(tensor.name)
        if stored is None:
            raise ModelLoadError(f"{self._source}: it has no tensor that would be {tensor.name} in transformers")
        location = stored.location
        if _without_ones(location.shape) != _without_ones(tensor.shape):
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


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _plain_rows(stored: StoredTensor) -> Iterator[NDArray[np.float32]]:
    """Gives a vector as one row; where its elements are of heads they are brought into order, too."""
    location, kind = stored.location, stored.location.block_type.name
    for raw in _chunks(stored):
        numbers = raw.reshape(-1).view(_PLAIN[kind])
        rows = to_float32(numbers, kind).reshape(len(raw), location.shape[-1])
        is_vector = len(location.shape) == 1
        for parts in in_order(iter([{"values": rows.T if is_vector else rows}]), stored.row_order):
            values = parts["values"].astype(np.float32, copy=False)
            yield values.T if is_vector else values


def _blocks(stored: StoredTensor) -> Iterator[NDArray[np.uint8]]:
    """Gives [some rows, blocks of a row, bytes of a block]."""
    for raw in _chunks(stored):
        yield raw.reshape(len(raw), -1, stored.location.block_type.num_bytes)


def _chunks(stored: StoredTensor) -> Iterator[NDArray[np.uint8]]:
    """Gives [some rows, bytes of a row]; whole heads where these are put in order."""
    location = stored.location
    num_rows, unit = math.prod(location.shape[:-1]), stored.head_dim or 1
    rows_per_chunk = max(1, CHUNK_BYTES // (4 * location.shape[-1]) // unit) * unit
    with location.path.open("rb") as file:
        file.seek(location.offset)
        for start in range(0, num_rows, rows_per_chunk):
            count = min(rows_per_chunk, num_rows - start)
            yield np.fromfile(file, np.uint8, count * location.row_bytes).reshape(count, location.row_bytes)
