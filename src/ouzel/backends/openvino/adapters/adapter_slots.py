"""Keeps the matrices of LoRA adapters in slots; a step passes the slots it uses to the model.

All slots of a group of matrices lie one after the other, in a memory mapping of their own. The
operating system allocates pages when a slot is filled and frees them when it is cleared. The base
weights are not touched.
"""

import math
import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.adapters.adapter_embedding import EmbeddingSlots
from ouzel.backends.openvino.adapters.adapter_files import AdapterFiles
from ouzel.backends.openvino.adapters.adapter_rows import row_inputs, used_slots
from ouzel.backends.openvino.adapters.matrix_changes import MatrixChange
from ouzel.backends.openvino.graph.adapter_shape import (
    A_PREFIX,
    B_PREFIX,
    FACTOR_PREFIX,
    NORM_PREFIX,
    SHIFT_PREFIX,
    AdaptedGroup,
    AdaptedMatrix,
    AdapterShape,
)
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.graph_request import GraphRequest
from ouzel.backends.openvino.weights.encodings import encode_bf16
from ouzel.engine.base import ForwardBatch

_MAX_STORED = 32  # ranges of slots whose tensors are kept: making them takes a millisecond or two


@dataclass(frozen=True, slots=True)
class _Stack:
    """The matrices A, the matrices B of one group, or one vector, in all slots."""

    name: str  # name of the input
    values: NDArray[np.generic]  # [slots, ...], f32 or the bits of bf16
    begin: int  # offset in the mapping, in bytes
    dtype: ov.Type
    no_rank: tuple[int, ...]  # shape of one slot of rank 0, which adds nothing


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a matrix in the stacks."""

    matrix: AdaptedMatrix
    group: AdaptedGroup
    index: int  # index in the group


class AdapterSlots:
    def __init__(self, shape: AdapterShape, num_slots: int, request: GraphRequest) -> None:
        self._places = {
            matrix.name: _Place(matrix, group, index)
            for group in shape.groups
            for index, matrix in enumerate(group.matrices)
        }
        self._parts = sorted({parts for group in shape.groups for parts in group.parts}, key=str)
        self._shape = shape
        self._rank = shape.rank
        self._dtype = shape.dtype
        self._request = request
        self._embeddings: EmbeddingSlots | None = None
        if shape.embedding is not None:
            self._embeddings = EmbeddingSlots(shape.embedding.num_columns)
        self._memory, self._stacks = _stacks(shape, num_slots)
        self._stored_tensors: dict[range, dict[str, ov.Tensor]] = {}
        self._current_slots: range | None = None  # slots that the request has as inputs

    def fill(self, slot: int, path: str) -> bytes:
        """Fills a slot from an adapter directory and returns a digest of its matrices.

        The digest is made from the values in the slot, because the files may change meanwhile.
        Raises ModelLoadError; the slot may be half filled then.
        """
        files = AdapterFiles(Path(path), self._shape)
        digest = blake2b(digest_size=16)

        def add_to_digest(name: str, *arrays: NDArray[np.generic] | None) -> None:
            for array in arrays:
                digest.update(f"{name} {None if array is None else array.shape}".encode())
                digest.update(b"" if array is None else np.ascontiguousarray(array).data)

        for name in sorted(files.names):
            change = files.read(name)
            self._put(slot, self._places[name], change)
            add_to_digest(name, change.a, change.b, change.factor, change.shift)
        for name, difference in sorted(files.read_norms().items()):
            self._put_vector(slot, NORM_PREFIX + name, difference)
            add_to_digest(name, difference)
        embedding = files.read_embedding()
        if embedding is not None and self._embeddings is not None:
            self._embeddings.fill(slot, embedding)
            tokens, rows = embedding.tokens, embedding.token_rows
            add_to_digest("embedding", embedding.a, embedding.b, embedding.factor, tokens, rows)
        return digest.digest()

    def _put(self, slot: int, place: _Place, change: MatrixChange) -> None:
        """Puts the change into the slot; beyond a smaller rank the slot keeps its zeros."""
        self._put_vector(slot, FACTOR_PREFIX + place.matrix.name, change.factor)
        self._put_vector(slot, SHIFT_PREFIX + place.matrix.name, change.shift)
        a, b = change.a, change.b
        group, rank = place.group, a.shape[0]
        a_values, b_values = (
            self._stacks[prefix + group.name].values for prefix in (A_PREFIX, B_PREFIX)
        )
        begin = place.index * self._rank
        a_values[slot, :, begin : begin + rank] = self._encode(a.T)
        parts = group.parts[place.index]
        own = b_values[slot].reshape(group.num_parts, self._rank, group.part_len)[
            parts.begin : parts.end
        ]
        rows = b.reshape(len(parts), group.part_len, rank)
        own[:, :rank] = self._encode(rows.transpose(0, 2, 1))

    def _put_vector(self, slot: int, name: str, values: NDArray[np.float32] | None) -> None:
        if values is not None:
            self._stacks[name].values[slot] = values

    def _encode(self, values: NDArray[np.float32]) -> NDArray[np.generic]:
        return values if self._dtype == ov.Type.f32 else encode_bf16(values)["values"]

    def clear(self, slot: int) -> None:
        if self._embeddings is not None:
            self._embeddings.clear(slot)
        for stack in self._stacks.values():
            begin = stack.begin + slot * stack.values[0].nbytes
            _give_back(self._memory, stack.values[slot].reshape(-1).view(np.uint8), begin)

    def inputs(self, batch: ForwardBatch) -> dict[str, NDArray[np.generic]]:
        """Gives the request the slots that the batch uses, and returns the inputs that map rows to
        them.
        """
        used = used_slots(batch.adapter_slots)
        if used != self._current_slots:
            for name, tensor in self._tensors(used).items():
                self._request.keep(name, tensor)
            self._current_slots = used
        inputs = row_inputs(
            batch.adapter_slots, len(batch.token_ids), batch.sampled_rows, self._parts
        )
        if self._embeddings is not None:
            inputs |= self._embeddings.inputs(batch)
        return {name: array for name, array in inputs.items() if self._request.has_input(name)}

    def _tensors(self, used: range) -> dict[str, ov.Tensor]:
        if used not in self._stored_tensors:
            if len(self._stored_tensors) == _MAX_STORED:
                self._stored_tensors.clear()
            self._stored_tensors[used] = dict(self._make_tensors(used))
        return self._stored_tensors[used]

    def _make_tensors(self, used: range) -> Iterator[tuple[str, ov.Tensor]]:
        for stack in self._stacks.values():
            values = stack.values[used.start : used.stop]
            if used:
                yield stack.name, ov.Tensor(values, ov.Shape(values.shape), stack.dtype)
            else:
                yield stack.name, ov.Tensor(stack.dtype, ov.Shape(stack.no_rank))


def _stacks(shape: AdapterShape, num_slots: int) -> tuple[mmap.mmap, dict[str, _Stack]]:
    """Allocates the stacks in one mapping; each begins with a page of its own."""
    shapes: dict[str, Callable[[int], tuple[int, ...]]] = {}  # shape of a slot by rank
    for group in shape.groups:
        shapes |= {A_PREFIX + group.name: group.a_shape, B_PREFIX + group.name: group.b_shape}
    types = dict.fromkeys(shapes, shape.dtype)
    for name, size in shape.vectors.items():
        shapes[name] = _vector_shape(size)
        types[name] = ov.Type.f32
    elements = [
        np.dtype(np.float32 if each == ov.Type.f32 else np.uint16) for each in types.values()
    ]
    counts = [num_slots * math.prod(each(shape.rank)) for each in shapes.values()]
    pages = [
        -(-count * element.itemsize // mmap.PAGESIZE)
        for count, element in zip(counts, elements, strict=True)
    ]
    memory = mmap.mmap(-1, sum(pages) * mmap.PAGESIZE, **_PRIVATE)
    begins = [begin * mmap.PAGESIZE for begin in accumulate(pages, initial=0)]
    stacks = {}
    for (name, of_rank), element, count, begin in zip(
        shapes.items(), elements, counts, begins, strict=False
    ):
        values = np.frombuffer(memory, element, count, begin).reshape(
            num_slots, *of_rank(shape.rank)
        )
        stacks[name] = _Stack(name, values, begin, types[name], (1, *of_rank(0)))
    return memory, stacks


def _vector_shape(size: int) -> Callable[[int], tuple[int, ...]]:
    return lambda rank: (size,)


# Pages of a private mapping can be given back; pages of a shared mapping, the default, cannot.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def _give_back(memory: mmap.mmap, part: NDArray[np.uint8], begin: int) -> None:
    """Sets a part of the memory to zero and gives its whole pages back to the system."""
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (begin + part.size) // mmap.PAGESIZE * mmap.PAGESIZE
    if first >= last or not hasattr(mmap, "MADV_DONTNEED"):
        part[:] = 0
        return
    part[: first - begin] = 0
    part[last - begin :] = 0
    memory.madvise(mmap.MADV_DONTNEED, first, last - first)
