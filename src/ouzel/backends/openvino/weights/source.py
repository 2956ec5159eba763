"""A graph is built from matrices in their compressed encoding and float32 vectors, by tensor name.

Tensors  what a checkpoint has: safetensors, quantised safetensors, GGUF Weights  what a graph asks
for: `CompressedWeights` make them of tensors, `CachedWeights` read what these made before
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.config.weights import WidthOption

Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One as a checkpoint has it. All dimensions but the last are rows; where `is_transposed`, the
    last two change places first.
    """

    name: str
    shape: tuple[int, ...]  # as it is stored
    is_transposed: bool = False


@dataclass(frozen=True, slots=True)
class StoredForm:
    """How a checkpoint stores a quantised tensor: the format's name for it, such as Q4_K, and the
    bits of a value.
    """

    name: str
    bits: int


@dataclass(frozen=True, slots=True)
class MatrixSpec:
    """A matrix of one tensor, or of several below each other."""

    tensors: tuple[Tensor, ...]
    shape: tuple[int, ...]  # [rows, columns], or [experts, rows, columns]
    row_order: tuple[int, ...] | None = None  # of each `row_unit` rows; None: as they come
    row_unit: int = 0  # where the order leaves rows out; 0: as many as it has
    # all of it as one tensor, which is taken where the checkpoint has that
    instead: Tensor | None = None
    is_integer: bool = False  # stored floats of four bits become integers

    @property
    def key(self) -> str:
        first, last = self.tensors[0].name, self.tensors[-1].name
        names = first if len(self.tensors) == 1 else f"{first} to {last}"
        if not self.row_unit:
            return names
        assert self.row_order
        return f"{names}, rows {self.row_order[0]} to {self.row_order[-1]} of each {self.row_unit}"


@dataclass(frozen=True, slots=True)
class Matrix:
    """It is compressed; encodings.py says what the parts are. Rows of experts lie below each other."""

    encoding: Encoding
    shape: tuple[int, ...]  # [rows, columns], or [experts, rows, columns]
    parts: Parts

    def expert(self, number: int) -> "Matrix":
        """Returns one of [experts, rows, columns]; its parts point into these."""
        _, num_rows, columns = self.shape
        rows = slice(number * num_rows, (number + 1) * num_rows)
        return Matrix(
            self.encoding,
            (num_rows, columns),
            {name: part[rows] for name, part in self.parts.items()},
        )


class Tensors(Protocol):
    """A checkpoint's tensors, by the names that transformers gives them, a few rows at a time."""

    def names(self) -> Iterable[str]:
        """Returns all that can be asked for: a tensor stored as values and scales is one."""
        ...

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        """Returns the encoding that `parts` gives; None where the tensor is stored as plain
        numbers.

        Raises ModelLoadError where it is missing or has another shape.
        """
        ...

    def stored_form(self, tensor: Tensor) -> StoredForm | None:
        """Returns None where the tensor is stored as plain numbers.

        Raises ModelLoadError where the tensor is missing or has another shape.
        """
        ...

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        """Gives [some rows, columns], split along its first axis."""
        ...

    def parts(self, tensor: Tensor) -> Iterator[Parts]: ...


class Weights(Protocol):
    def matrix(self, wanted: MatrixSpec, width: WidthOption) -> Matrix:
        """Compresses the tensors to `width`; with auto, keeps matrices that are stored compressed
        already.
        """
        ...

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]: ...

    def has(self, name: str) -> bool:
        """Tells whether there is such a tensor; where weights were made before, whether it was
        asked for then.
        """
        ...


def value_types(index: Mapping[str, Any]) -> str:  # Any: JSON
    """Names the types of matrices, such as `u4, u8`, those of the most elements first."""
    num_elements: Counter[str] = Counter()
    for entry in index.values():
        if "encoding" in entry:
            num_elements[entry["encoding"]["values"]] += math.prod(entry["shape"])
    return ", ".join(values for values, _ in num_elements.most_common())


class PartWriter(Protocol):
    def append(self, chunks: Iterable[Array]) -> tuple[Array, dict[str, Any]]:
        """Stores the chunks, joined along their first axis; returns the whole and its index entry."""
        ...


class MemoryWriter:
    """Keeps the parts in memory, for when they cannot be kept on disk."""

    def append(self, chunks: Iterable[Array]) -> tuple[Array, dict[str, Any]]:
        return np.ascontiguousarray(np.concatenate(list(chunks))), {}  # chunks may be transposed
