"""Reads the header of GGUF files: metadata, and the locations of the tensors.

The format (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), in little-endian order:

    "GGUF", u32 version, u64 number of tensors, u64 number of metadata entries
    entries   string key, u32 type, value; a string is u64 length and bytes,
              an array u32 type, u64 length and values
    tensors   string name, u32 number of dimensions, u64 each (the row's first),
              u32 block type, u64 offset
    data      from the next multiple of general.alignment; so does each tensor

A large model may be split into files `<name>-00001-of-0000N.gguf`. The first file has the metadata,
each file has its own tensors.

Files are not trusted: each length is compared with the file's size before anything is read or
allocated, the tensors must lie one after the other, and each must be as long as its shape says. So
no byte outside the file is read, and no byte belongs to two tensors.
"""

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.checkpoint.model_files import MAX_VOCAB_SIZE, brief
from ouzel.errors import ModelLoadError
from ouzel.gguf.block_types import BLOCK_TYPES, BlockType
from ouzel.gguf.metadata import Metadata, Value

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT, MAX_ALIGNMENT = 32, 2**16
# Several times as many as in any published model.
MAX_HEADER_BYTES = 128 * 2**20
MAX_ENTRIES = 2**14
MAX_TENSORS = 2**18
MAX_DIMENSIONS = 4
MAX_NAME_BYTES = 2**10

_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class TensorLocation:
    path: Path
    block_type: BlockType
    shape: tuple[int, ...]  # numpy's order: the row length last
    offset: int  # bytes from the start of the file

    @property
    def row_bytes(self) -> int:
        return self.shape[-1] // self.block_type.num_values * self.block_type.num_bytes


@dataclass(frozen=True, slots=True)
class Gguf:
    """One model, in one or several files."""

    metadata: Metadata
    tensors: dict[str, TensorLocation]

    def floats(self, name: str) -> list[float]:
        """Reads a small vector of numbers that are not quantised."""
        location = self.tensors[name]
        if location.block_type.name != "F32" or len(location.shape) != 1:
            raise ModelLoadError(f"{location.path}: tensor {name} must be a vector of F32")
        with location.path.open("rb") as file:
            file.seek(location.offset)
            return [float(value) for value in np.fromfile(file, "<f4", location.shape[0])]


def read_gguf(paths: list[Path]) -> Gguf:
    """Reads the headers of a model's files, of which the first has the metadata.

    Raises ModelLoadError.
    """
    read = [read_header(path) for path in paths]
    tensors: dict[str, TensorLocation] = {}
    for (metadata, own), path in zip(read, paths, strict=True):
        if (count := metadata.integer("split.count", 1)) != len(paths):
            raise ModelLoadError(
                f"{path}: split.count must be {len(paths)}, the number of files, found {count}"
            )
        if twice := tensors.keys() & own.keys():
            raise ModelLoadError(
                f"{path}: tensor {min(twice)} is in another file of the model, too"
            )
        tensors |= own
    first = read[0][0]
    if (expected := first.integer("split.tensors.count", len(tensors))) != len(tensors):
        raise ModelLoadError(
            f"{paths[0]}: split.tensors.count must be {len(tensors)}, the number of tensors, "
            f"found {expected}"
        )
    return Gguf(first, tensors)


def read_header(path: Path) -> tuple[Metadata, dict[str, TensorLocation]]:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if file.read(8) == b"version ":
                raise ModelLoadError(
                    f"{path} is a Git LFS pointer, not the model: run `git lfs pull`"
                )
            if size < 24:
                raise ModelLoadError(f"{path} is truncated: {size} bytes are less than its header")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _read_header(_Cursor(data, path), path, size)
    except OSError as error:
        raise ModelLoadError(f"{path} cannot be read: {error}") from error


def _read_header(
    cursor: "_Cursor", path: Path, size: int
) -> tuple[Metadata, dict[str, TensorLocation]]:
    if cursor.take(4) != MAGIC:
        raise ModelLoadError(f"{path} is not a GGUF file: it does not begin with GGUF")
    if (version := cursor.integer("I")) not in VERSIONS:
        raise ModelLoadError(
            f"{path}: version {version} is not supported; supported: 2 and 3, little-endian"
        )
    num_tensors = cursor.count("Q", "tensors", MAX_TENSORS)
    num_entries = cursor.count("Q", "metadata entries", MAX_ENTRIES)
    values: dict[str, Value] = {}
    for _ in range(num_entries):
        key = cursor.name()
        if key in values:
            raise ModelLoadError(f"{path}: the metadata has the key {brief(key)} twice")
        values[key] = cursor.value()
    metadata = Metadata(values, str(path))
    alignment = metadata.integer("general.alignment", DEFAULT_ALIGNMENT)
    if not 0 < alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise metadata.wrong("general.alignment", f"a power of two <= {MAX_ALIGNMENT}", alignment)
    entries = [_read_tensor(cursor, path) for _ in range(num_tensors)]
    return metadata, _locate(path, entries, _aligned(cursor.position, alignment), alignment, size)


def _read_tensor(cursor: "_Cursor", path: Path) -> tuple[str, BlockType, tuple[int, ...], int]:
    """Returns name, block type, shape and offset from the start of the data."""
    name = cursor.name()
    where = f"{path}: tensor {brief(name)}"
    num_dimensions = cursor.integer("I")
    if not 1 <= num_dimensions <= MAX_DIMENSIONS:
        raise ModelLoadError(
            f"{where} must have 1 to {MAX_DIMENSIONS} dimensions, found {num_dimensions}"
        )
    shape = tuple(cursor.integer("Q") for _ in range(num_dimensions))[::-1]
    number = cursor.integer("I")
    block_type = BLOCK_TYPES.get(number)
    if block_type is None:
        raise ModelLoadError(f"{where} has the unknown block type {number}")
    if min(shape) < 1 or shape[-1] % block_type.num_values:
        raise ModelLoadError(
            f"{where} has the shape {brief(shape)}, "
            f"but a row must consist of whole blocks of {block_type.name}"
        )
    return name, block_type, shape, cursor.integer("Q")


def _locate(
    path: Path,
    entries: list[tuple[str, BlockType, tuple[int, ...], int]],
    start: int,
    alignment: int,
    size: int,
) -> dict[str, TensorLocation]:
    """Returns the tensors' locations in the file.

    Raises ModelLoadError unless the tensors lie one after the other within the file.
    """
    locations: dict[str, TensorLocation] = {}
    position = 0
    for name, block_type, shape, offset in entries:
        where = f"{path}: tensor {brief(name)}"
        if name in locations:
            raise ModelLoadError(f"{where} is in the file twice")
        if offset != position:
            raise ModelLoadError(
                f"{where} must begin at byte {position} of the data, found {offset}"
            )
        end = offset + math.prod(shape) // block_type.num_values * block_type.num_bytes
        if start + end > size:
            raise ModelLoadError(
                f"{where} is truncated: it ends at byte {start + end}, the file has {size}"
            )
        locations[name] = TensorLocation(path, block_type, shape, start + offset)
        position = _aligned(end, alignment)
    return locations


def _aligned(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment


class _Cursor:
    """Reads the header from front to back, and never beyond its end."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data = data
        self._end = min(len(data), MAX_HEADER_BYTES)
        self._path = path
        self.position = 0

    def take(self, num_bytes: int) -> bytes:
        begin = self.position
        if num_bytes > self._end - begin:
            raise ModelLoadError(
                f"{self._path} is truncated or broken: "
                f"its header needs {brief(num_bytes)} bytes at {begin} of {self._end}"
            )
        self.position = begin + num_bytes
        return self._data[begin : self.position]

    def integer(self, kind: str) -> int:
        (value,) = struct.unpack("<" + kind, self.take(struct.calcsize("<" + kind)))
        return int(value)

    def count(self, kind: str, noun: str, limit: int) -> int:
        value = self.integer(kind)
        if value > limit:
            raise ModelLoadError(f"{self._path} must have <= {limit} {noun}, found {value}")
        return value

    def name(self) -> str:
        text = self.string()
        if not text or len(text) > MAX_NAME_BYTES:
            raise ModelLoadError(
                f"{self._path}: a name must have 1 to {MAX_NAME_BYTES} characters, "
                f"found {brief(text)}"
            )
        return text

    def string(self) -> str:
        try:
            return self.take(self.integer("Q")).decode()
        except UnicodeDecodeError as error:
            raise ModelLoadError(
                f"{self._path}: the header has a string that is not UTF-8: {error}"
            ) from error

    def value(self) -> Value:
        kind = self.integer("I")
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self._array()
        code = self._number(kind)
        (value,) = struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))
        # The shortest decimal notation of the float32, so that 1e-06 stays 1e-06.
        number: int | float | bool = float(str(np.float32(value))) if code == "f" else value
        return number

    def _array(self) -> list[str] | NDArray[np.generic]:
        kind = self.integer("I")
        length = self.count("Q", "elements in an array", MAX_VOCAB_SIZE)
        if kind == _STRING:
            return [self.string() for _ in range(length)]
        if kind == _ARRAY:
            raise ModelLoadError(f"{self._path}: arrays of arrays are not supported")
        dtype = np.dtype("<" + self._number(kind))
        return np.frombuffer(self.take(length * dtype.itemsize), dtype)

    def _number(self, kind: int) -> str:
        code = _NUMBERS.get(kind)
        if code is None:
            raise ModelLoadError(
                f"{self._path}: the metadata has a value of the unknown type {kind}"
            )
        return code
