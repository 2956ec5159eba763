"""Compressed weights: made from a checkpoint once, kept on disk, mapped into memory from then on.

An entry is a directory `<checkpoint>-<encoding>-<source key>-<content key>/` with

    weights.bin   the parts of all matrices and vectors, one after the other, each aligned to ALIGNMENT
    index.json    format, bytes of weights.bin, and name -> encoding, shape and where each part lies

The content key covers the checkpoint's files (path, size, time of change), the encoding, config.json, the versions
of openvino and ouzel, and FORMAT. An entry is written to a temporary directory and renamed, so it is complete or
absent. While an entry is being made its parts are already used through a mapping of the file: compressed weights
never take anonymous memory, so loading for the first time needs no more of it than loading again.
"""

import json
import logging
import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.quantize import Encoding, Parts, encoder
from ouzel.backends.openvino.weights import Checkpoint

logger = logging.getLogger(__name__)

FORMAT = 1  # raise it when the encodings or the layout of an entry change
ALIGNMENT = 64
WEIGHTS_FILE = "weights.bin"
INDEX_FILE = "index.json"


@dataclass(frozen=True)
class Matrix:
    """A compressed [rows, columns] matrix; quantize.py says what the parts are."""

    encoding: Encoding
    rows: int
    columns: int
    parts: Parts


class Weights(Protocol):
    """What a graph is built from."""

    def matrix(self, names: tuple[str, ...], rows: tuple[int, ...], columns: int, encoding: Encoding) -> Matrix:
        """One matrix of the named tensors' rows, one tensor below the other."""
        ...

    def vector(self, names: tuple[str, ...], sizes: tuple[int, ...]) -> NDArray[np.float32]: ...


class PartWriter(Protocol):
    def append(self, chunks: Iterable[NDArray[np.generic]]) -> tuple[NDArray[np.generic], dict[str, Any]]:
        """Stores the chunks, joined along their first axis; returns the whole and its index entry."""
        ...


class FileWriter:
    """Appends arrays to weights.bin and hands them back as mappings of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] = path.open("wb")

    def append(self, chunks: Iterable[NDArray[np.generic]]) -> tuple[NDArray[np.generic], dict[str, Any]]:
        self._file.write(b"\0" * (-self._file.tell() % ALIGNMENT))
        offset, num_rows = self._file.tell(), 0
        for chunk in chunks:
            self._file.write(np.ascontiguousarray(chunk).data)
            num_rows += len(chunk)
            dtype, row_shape = chunk.dtype, chunk.shape[1:]
        self._file.flush()
        shape = (num_rows, *row_shape)
        # Copy-on-write rather than read-only, because openvino shares only writable arrays; nothing writes.
        part = np.memmap(self._path, dtype, "c", offset, shape)
        return part, {"dtype": dtype.name, "shape": shape, "offset": offset}

    def close(self) -> int:
        self._file.close()
        return self._path.stat().st_size


class MemoryWriter:
    """Keeps arrays in memory: for when there is no place to keep them on disk."""

    def append(self, chunks: Iterable[NDArray[np.generic]]) -> tuple[NDArray[np.generic], dict[str, Any]]:
        return np.concatenate(list(chunks)), {}


class CheckpointWeights:
    """Compresses tensors of a checkpoint as they are asked for."""

    def __init__(self, checkpoint: Checkpoint, writer: PartWriter) -> None:
        self._checkpoint = checkpoint
        self._writer = writer
        self.index: dict[str, Any] = {}  # Any: JSON

    def matrix(self, names: tuple[str, ...], rows: tuple[int, ...], columns: int, encoding: Encoding) -> Matrix:
        encode = encoder(encoding)
        chunks = chain.from_iterable(
            self._checkpoint.rows(name, (num_rows, columns)) for name, num_rows in zip(names, rows, strict=True)
        )
        small: dict[str, list[NDArray[np.generic]]] = {}  # every part but the values, which are written as they come

        def values() -> Iterator[NDArray[np.generic]]:
            for chunk in chunks:
                parts = encode(chunk)
                yield parts.pop("values")
                for part_name, part in parts.items():
                    small.setdefault(part_name, []).append(part)

        parts: Parts = {}
        entries = {}
        parts["values"], entries["values"] = self._writer.append(values())
        for part_name, pieces in small.items():
            parts[part_name], entries[part_name] = self._writer.append(pieces)
        self.index[entry_name(names)] = {"encoding": encoding, "columns": columns, "parts": entries}
        return Matrix(encoding, sum(rows), columns, parts)

    def vector(self, names: tuple[str, ...], sizes: tuple[int, ...]) -> NDArray[np.float32]:
        chunks = chain.from_iterable(
            self._checkpoint.rows(name, (size,)) for name, size in zip(names, sizes, strict=True)
        )
        vector, entry = self._writer.append(chunks)
        self.index[entry_name(names)] = {"encoding": "f32", "columns": 1, "parts": {"values": entry}}
        return vector.astype(np.float32, copy=False)


class CachedWeights:
    """The same from a finished entry, without touching the checkpoint."""

    def __init__(self, entry: Path) -> None:
        """OSError, ValueError, KeyError or TypeError: the entry is broken."""
        document = json.loads((entry / INDEX_FILE).read_text(encoding="utf-8"))
        self._index = document["weights"]
        with (entry / WEIGHTS_FILE).open("rb") as file:
            self._mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        if len(self._mapping) != document["bytes"]:
            raise ValueError(f"{WEIGHTS_FILE} has {len(self._mapping)} bytes instead of {document['bytes']}")

    def matrix(self, names: tuple[str, ...], rows: tuple[int, ...], columns: int, encoding: Encoding) -> Matrix:
        entry = self._index[entry_name(names)]
        if entry["encoding"] != encoding or entry["columns"] != columns:
            raise ValueError(f"{names} is another matrix than expected")
        parts = {name: self._part(part) for name, part in entry["parts"].items()}
        if any(len(part) != sum(rows) for part in parts.values()):
            raise ValueError(f"{names} has another number of rows than {sum(rows)}")
        return Matrix(encoding, sum(rows), columns, parts)

    def vector(self, names: tuple[str, ...], sizes: tuple[int, ...]) -> NDArray[np.float32]:
        return self._part(self._index[entry_name(names)]["parts"]["values"]).astype(np.float32, copy=False)

    def _part(self, part: dict[str, Any]) -> NDArray[np.generic]:
        count = int(np.prod(part["shape"]))
        return np.frombuffer(self._mapping, np.dtype(part["dtype"]), count, part["offset"]).reshape(part["shape"])


def entry_name(names: tuple[str, ...]) -> str:
    return " + ".join(names)
