"""A quantised checkpoint is a plain one with a format on top, which knows how some of its matrices
are packed.

What the format does not find packed is plain: files, not lists of exclusions in config.json, say
what is quantised. So a matrix that is there in neither form is missing, and one whose scales are
gone is refused rather than misread.
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
from ouzel.backends.openvino.weights.safetensors import PLAIN_TYPES, Checkpoint, TensorLocation
from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.errors import ModelLoadError

Rows = Iterator[NDArray[np.float32]]
_EIGHT_BITS = ("u8", "i8")


@dataclass(frozen=True, slots=True)
class Stored:
    """A matrix as a format has it. Where `encoding` is None, none of ours says the same, and there
    are no parts.
    """

    encoding: Encoding | None
    form: StoredForm
    parts: Callable[[], Iterator[Parts]]
    rows: Callable[[], Rows]


def packed(
    encoding: Encoding,
    parts: Callable[[], Iterator[Parts]],
    column_order: NDArray[Any] | None = None,
) -> Stored:
    """`column_order` says which column each column of the parts is: then groups are not made of
    neighbours, no encoding of ours says the same, and only rows can be had.
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


def recompressed(form: StoredForm, rows: Callable[[], Rows]) -> Stored:
    def parts() -> Iterator[Parts]:
        raise AssertionError("it is stored in no encoding of ours")

    return Stored(None, form, parts, rows)


class Format(Protocol):
    """It has read the settings of one quant_method, and finds what they say in one checkpoint."""

    checkpoint: Checkpoint
    summary: str  # for the log: what config.json says of the weights

    def names(self) -> Iterable[str]:
        """Gives the names that the tensors would have if they were plain."""
        ...

    def find(self, tensor: Tensor) -> Stored | None:
        """Returns None where the tensor is not packed. Raises ModelLoadError where it is, but not
        as it should be.
        """
        ...


class QuantizedCheckpoint:
    """Implements `Tensors`."""

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
    """Returns what the weight is called that the tensor stands for, or belongs to; `companions` are
    ends of names.
    """
    end = next((end for end in companions if name.endswith(end)), None)
    return name if end is None else name.removesuffix(end) + ".weight"


def module_names(checkpoint: Checkpoint) -> set[str]:
    """Returns those that have tensors, as the files call them and as they are called where a model
    is alone.
    """
    tensors = {name: checkpoint.find(name) for name in checkpoint.names()}
    names = {*tensors, *(location.name for location in tensors.values() if location is not None)}
    return names | {name.rpartition(".")[0] for name in names}


def read_scales(checkpoint: Checkpoint, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Returns them as f16 where they are stored so, else as float32."""
    location = checkpoint.locate(name, shape, *PLAIN_TYPES)
    return (
        checkpoint.read(name, shape, "F16")
        if location.dtype == "F16"
        else checkpoint.floats(name, shape)
    )


def scale_type(location: TensorLocation) -> Scales:
    """Returns what `read_scales` makes of them."""
    return "f16" if location.dtype == "F16" else "f32"


def bytes_of(words: NDArray[Any]) -> NDArray[np.uint8]:
    """Splits the 32-bit words of each row into bytes, lowest first: eight nibbles lie as
    encodings.py has them.
    """
    return np.ascontiguousarray(words).view(np.uint8)


def ordered(values: NDArray[np.uint8], order: NDArray[Any] | None, bits: int) -> NDArray[np.uint8]:
    """Returns the columns of packed values in another order."""
    if order is None:
        return values
    return pack_nibbles(unpack_nibbles(values)[:, order]) if bits == 4 else values[:, order]


def order_of_groups(
    group_indices: NDArray[np.int32], group_size: int, name: str
) -> NDArray[Any] | None:
    """Returns which columns to put next to each other to have the groups together; None where they
    are already.
    """
    together = np.arange(len(group_indices)) // group_size
    if np.array_equal(group_indices, together):
        return None
    order = np.argsort(group_indices, kind="stable")
    if not np.array_equal(group_indices[order], together):
        raise ModelLoadError(f"tensor {name} must have {group_size} columns in each group")
    return order
