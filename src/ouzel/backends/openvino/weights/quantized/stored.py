"""Reads a quantised checkpoint: a plain one, and a format that unpacks some of its matrices.

A matrix that the format does not find packed is plain: the files, not lists of exclusions in
config.json, decide. So a matrix that exists in neither form is missing, and a matrix without its
scales is refused rather than misread.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.encodings import (
    Encoding,
    Parts,
    Scales,
    pack_nibbles,
    unpack_nibbles,
)
from ouzel.backends.openvino.weights.safetensors import PLAIN_TYPES, Checkpoint
from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.errors import ModelLoadError

Rows = Iterator[NDArray[np.float32]]
_EIGHT_BITS = ("u8", "i8")


@dataclass(frozen=True, slots=True)
class Stored:
    """A matrix as a quantised checkpoint stores it.

    `encoding` is None if no encoding of Ouzel represents the same values; in this case there are no
    parts.
    """

    encoding: Encoding | None
    form: StoredForm
    parts: Callable[[], Iterator[Parts]]
    rows: Callable[[], Rows]


def make_packed(
    encoding: Encoding,
    parts: Callable[[], Iterator[Parts]],
    column_order: NDArray[Any] | None = None,
) -> Stored:
    """Returns a matrix with its parts.

    `column_order` has the original column of each column of the parts. With it, groups are not
    neighbours, no encoding of Ouzel represents the same values, and only rows can be read.
    """

    def rows() -> Rows:
        for piece in parts():
            decoded = decode(encoding, piece)
            if column_order is None:
                yield decoded
            else:
                ordered = np.empty_like(decoded)
                ordered[:, column_order] = decoded
                yield ordered

    form = StoredForm(encoding.values, 8 if encoding.values in _EIGHT_BITS else 4)
    return Stored(encoding if column_order is None else None, form, parts, rows)


def make_recompressed(form: StoredForm, rows: Callable[[], Rows]) -> Stored:
    """Returns a matrix without parts, whose rows are compressed again."""

    def parts() -> Iterator[Parts]:
        raise AssertionError("the matrix has no encoding of Ouzel")

    return Stored(None, form, parts, rows)


class Format(Protocol):
    """Reads the settings of one quant_method, and finds the packed matrices of one checkpoint."""

    checkpoint: Checkpoint
    summary: str  # the weights by config.json, for the log

    def names(self) -> Iterable[str]:
        """Yields the names that the tensors would have in a plain checkpoint."""
        ...

    def find(self, tensor: Tensor) -> Stored | None:
        """Returns the matrix, None if the tensor is not packed.

        Raises ModelLoadError if the tensor is packed in a wrong way.
        """
        ...


class QuantizedCheckpoint:
    """Reads a checkpoint through its format; implements `Tensors`."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._checkpoint = format.checkpoint

    def names(self) -> Iterable[str]:
        return self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self._format.names())

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        stored = self._format.find(tensor)
        return self._checkpoint.stored_encoding(tensor) if stored is None else stored.encoding

    def stored_form(self, tensor: Tensor) -> StoredForm | None:
        stored = self._format.find(tensor)
        return self._checkpoint.stored_form(tensor) if stored is None else stored.form

    def rows(self, tensor: Tensor) -> Rows:
        stored = self._format.find(tensor)
        return self._checkpoint.rows(tensor) if stored is None else stored.rows()

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        stored = self._format.find(tensor)
        return self._checkpoint.parts(tensor) if stored is None else stored.parts()


def plain_name(name: str, companions: tuple[str, ...]) -> str:
    """Returns the name of the weight that a tensor belongs to.

    `companions` are the ends of such tensors' names.
    """
    end = next((end for end in companions if name.endswith(end)), None)
    return name if end is None else name.removesuffix(end) + ".weight"


def module_names(checkpoint: Checkpoint) -> set[str]:
    """Returns the modules that have tensors, by their names in the files and in a language model
    alone.
    """
    tensors = {name: checkpoint.find(name) for name in checkpoint.names()}
    names = {*tensors, *(location.name for location in tensors.values() if location is not None)}
    return names | {name.rpartition(".")[0] for name in names}


def read_scales(checkpoint: Checkpoint, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Returns scales as f16 if they are stored in f16, else as float32."""
    location = checkpoint.locate(name, shape, *PLAIN_TYPES)
    if location.dtype == "F16":
        return checkpoint.read(name, shape, "F16")
    return checkpoint.floats(name, shape)


def scale_type(location: TensorLocation) -> Scales:
    """Returns the type of the scales from `read_scales`."""
    return "f16" if location.dtype == "F16" else "f32"


def split_words(words: NDArray[Any]) -> NDArray[np.uint8]:
    """Splits the 32-bit words of each row into bytes, the lowest first.

    Eight nibbles then have the order of encodings.py.
    """
    return np.ascontiguousarray(words).view(np.uint8)


def reorder_columns(
    values: NDArray[np.uint8], order: NDArray[Any] | None, bits: int
) -> NDArray[np.uint8]:
    """Returns packed values with their columns in another order."""
    if order is None:
        return values
    return pack_nibbles(unpack_nibbles(values)[:, order]) if bits == 4 else values[:, order]


def find_group_order(
    group_indices: NDArray[np.int32], group_size: int, name: str
) -> NDArray[Any] | None:
    """Returns the order of the columns that brings groups together, None if they are together
    already.

    Raises ModelLoadError if the groups do not all have `group_size` columns.
    """
    together = np.arange(len(group_indices)) // group_size
    if np.array_equal(group_indices, together):
        return None
    order = np.argsort(group_indices, kind="stable")
    if not np.array_equal(group_indices[order], together):
        raise ModelLoadError(f"tensor {name} must have {group_size} columns in each group")
    return order
