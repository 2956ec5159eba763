"""Defines the interfaces between checkpoints and graphs.

- `Tensors`: the tensors of a checkpoint: safetensors, quantised safetensors, GGUF
- `Weights`: the matrices in their encoding and the float32 arrays that a graph asks for, by tensor
  name; `CompressedWeights` makes them from tensors, `CachedWeights` reads them from an earlier
  start
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.cells import BLOCK_ROWS
from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.config.weights import WidthOption

Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a checkpoint. All dimensions but the last are rows.

    With `is_transposed` the last two dimensions change places first. With a `witness`, the file has
    them in the other order if the witness's shape is stored swapped; the witness is never square.
    """

    name: str
    shape: tuple[int, ...]  # the shape as it is stored
    is_transposed: bool = False
    witness: "Tensor | None" = None  # this tensor itself, without a witness, or another one


@dataclass(frozen=True, slots=True)
class StoredForm:
    """The form of a quantised tensor: the format's name for it, such as Q4_K, and the
    bits of a value.
    """

    name: str
    bits: int


@dataclass(frozen=True, slots=True)
class MatrixSpec:
    """A matrix made of one tensor, or of several below each other."""

    tensors: tuple[Tensor, ...]
    shape: tuple[int, ...]  # [rows, columns], or [experts, rows, columns]
    # the order of each `row_unit` rows; None: as they come
    row_order: tuple[int, ...] | None = None
    row_unit: int = 0  # rows in a unit, if the order leaves rows out; 0: as many as the order has
    # The whole matrix as one tensor, which is used if the checkpoint has it.
    instead: Tensor | None = None
    is_integer: bool = False  # stored floats of four bits become integers
    may_be_packed: bool = False  # the graph can take the matrix in cells
    has_groups: bool = False  # int8 values have a scale for each group of columns, not each row

    @property
    def key(self) -> str:
        first, last = self.tensors[0].name, self.tensors[-1].name
        names = first if len(self.tensors) == 1 else f"{first} to {last}"
        if not self.row_unit:
            return names
        assert self.row_order
        return f"{names}, rows {self.row_order[0]} to {self.row_order[-1]} of each {self.row_unit}"


def describe_matrix(
    name: str,
    num_rows: int,
    num_columns: int,
    row_order: tuple[int, ...] | None = None,
    *,
    is_transposed: bool = False,
) -> MatrixSpec:
    """Describes a matrix [num_rows, num_columns] of one tensor, which the graph can take in cells.

    With `is_transposed` the tensor is stored [num_columns, num_rows].
    """
    shape = (num_rows, num_columns)
    stored = Tensor(name + ".weight", shape[::-1] if is_transposed else shape, is_transposed)
    return MatrixSpec((stored,), shape, row_order, may_be_packed=True)


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A compressed matrix; encodings.py defines the parts. Rows of experts lie below each
    other. Matrices compare by identity.
    """

    encoding: Encoding
    shape: tuple[int, ...]  # [rows, columns], or [experts, rows, columns]
    parts: Parts

    def expert(self, number: int) -> "Matrix":
        """Returns one expert of a matrix [experts, rows, columns]; its parts point into the
        whole.
        """
        _, num_rows, _ = self.shape
        return self.stack_experts().rows(number * num_rows, (number + 1) * num_rows)

    def rows(self, begin: int, end: int) -> "Matrix":
        """Returns the rows from `begin` to `end` of a matrix [rows, columns]; its parts point into
        the whole. In a packed matrix both are multiples of BLOCK_ROWS.
        """
        unit = BLOCK_ROWS if self.encoding.is_packed else 1
        rows = slice(begin // unit, end // unit)
        return Matrix(
            self.encoding,
            (end - begin, self.shape[-1]),
            {name: part[rows] for name, part in self.parts.items()},
        )

    def stack_experts(self) -> "Matrix":
        """Returns the experts of a matrix [experts, rows, columns] as one matrix."""
        num_experts, num_rows, columns = self.shape
        return Matrix(self.encoding, (num_experts * num_rows, columns), self.parts)


class Tensors(Protocol):
    """Reads the tensors of a checkpoint, by their names in transformers, a few rows at a time."""

    def names(self) -> Iterable[str]:
        """Returns the names of all tensors; a tensor stored as values and scales has one name."""
        ...

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        """Returns the encoding of the parts, None if the tensor is stored as plain numbers.

        Raises ModelLoadError if the tensor is missing or has another shape.
        """
        ...

    def stored_form(self, tensor: Tensor) -> StoredForm | None:
        """Returns the form of a quantised tensor, None if it is stored as plain numbers.

        Raises ModelLoadError if the tensor is missing or has another shape.
        """
        ...

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        """Yields [some rows, columns], split along the first axis."""
        ...

    def parts(self, tensor: Tensor) -> Iterator[Parts]: ...


class Weights(Protocol):
    """Gives the weights of a graph, by tensor name."""

    def matrix(self, spec: MatrixSpec, width: WidthOption) -> Matrix:
        """Returns a matrix compressed to `width`; with auto, stored compressed values stay."""
        ...

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]: ...

    def has(self, name: str) -> bool:
        """Tells whether there is such a tensor.

        Weights from the cache know only the tensors that the first build used.
        """
        ...


def value_types(index: Mapping[str, Any]) -> str:  # Any: JSON
    """Names the types of matrices, such as `u4, u8`, the type with the most elements first."""
    num_elements: Counter[str] = Counter()
    for entry in index.values():
        if "encoding" in entry:
            num_elements[entry["encoding"]["values"]] += math.prod(entry["shape"])
    return ", ".join(values for values, _ in num_elements.most_common())


class PartWriter(Protocol):
    def append(self, chunks: Iterable[Array]) -> tuple[Array, dict[str, Any]]:
        """Stores the chunks, joined along their first axis; returns the whole and its index
        entry.
        """
        ...


class MemoryWriter:
    """Stores the parts in memory, when they cannot be stored on disk."""

    def __init__(self) -> None:
        self.num_bytes = 0

    def append(self, chunks: Iterable[Array]) -> tuple[Array, dict[str, Any]]:
        part = np.ascontiguousarray(np.concatenate(list(chunks)))  # chunks may be transposed
        self.num_bytes += part.nbytes
        return part, {}
