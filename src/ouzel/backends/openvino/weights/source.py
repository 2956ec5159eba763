"""A graph is built from matrices in their compressed encoding and float32 vectors, by tensor name."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import Encoding, Parts, encoder
from ouzel.backends.openvino.weights.safetensors import Checkpoint

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Matrix:
    """It is compressed [rows, columns]; encodings.py says what the parts are."""

    encoding: Encoding
    rows: int
    columns: int
    parts: Parts


class Weights(Protocol):
    """Several names are several tensors below each other, read as one."""

    def matrix(self, names: tuple[str, ...], rows: tuple[int, ...], columns: int, encoding: Encoding) -> Matrix: ...

    def vector(self, names: tuple[str, ...], sizes: tuple[int, ...]) -> NDArray[np.float32]: ...


class PartWriter(Protocol):
    def append(self, chunks: Iterable[Array]) -> tuple[Array, dict[str, Any]]:
        """Stores the chunks, joined along their first axis; returns the whole and its index entry."""
        ...


class MemoryWriter:
    """Keeps the parts in memory, for when they cannot be kept on disk."""

    def append(self, chunks: Iterable[Array]) -> tuple[Array, dict[str, Any]]:
        return np.concatenate(list(chunks)), {}


class CheckpointWeights:
    """Compresses a checkpoint's tensors as they are asked for, a few rows at a time."""

    def __init__(self, checkpoint: Checkpoint, writer: PartWriter) -> None:
        self._checkpoint = checkpoint
        self._writer = writer
        self.index: dict[str, dict[str, Any]] = {}  # Any: JSON

    def matrix(self, names: tuple[str, ...], rows: tuple[int, ...], columns: int, encoding: Encoding) -> Matrix:
        encode = encoder(encoding)
        small: dict[str, list[Array]] = {}  # scales and zeros: few enough to wait until the values are written

        def values() -> Iterator[Array]:
            for chunk in self._chunks(names, [(num_rows, columns) for num_rows in rows]):
                parts = encode(chunk)
                yield parts.pop("values")
                for name, part in parts.items():
                    small.setdefault(name, []).append(part)

        parts: Parts = {}
        entries = {}
        parts["values"], entries["values"] = self._writer.append(values())
        for name, pieces in small.items():
            parts[name], entries[name] = self._writer.append(pieces)
        self.index[entry_name(names)] = {"encoding": encoding, "columns": columns, "parts": entries}
        return Matrix(encoding, sum(rows), columns, parts)

    def vector(self, names: tuple[str, ...], sizes: tuple[int, ...]) -> NDArray[np.float32]:
        values, entry = self._writer.append(self._chunks(names, [(size,) for size in sizes]))
        self.index[entry_name(names)] = {"encoding": "f32", "columns": 1, "parts": {"values": entry}}
        return values.astype(np.float32, copy=False)

    def _chunks(self, names: tuple[str, ...], shapes: list[tuple[int, ...]]) -> Iterator[NDArray[np.float32]]:
        return chain.from_iterable(
            self._checkpoint.rows(name, shape) for name, shape in zip(names, shapes, strict=True)
        )


def entry_name(names: tuple[str, ...]) -> str:
    """Returns the key of a matrix or vector in an index."""
    return " + ".join(names)
