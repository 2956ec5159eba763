"""A Hugging Face checkpoint has its tensors in safetensors files, which are read a few rows at a time.

The format (https://github.com/huggingface/safetensors): a u64 with the header's length, the header as JSON
(name -> dtype, shape, data_offsets relative to its end), then the bytes. Sharded checkpoints have
model.safetensors.index.json, whose weight_map gives the file of each tensor. Rows are read with plain file reads
rather than a mapping, so that a checkpoint larger than the memory never counts as resident.
"""

import json
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import ModelLoadError

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
CHUNK_BYTES = 32 * 2**20  # of float32 rows handed out at a time
_STORED_AS: dict[str, np.dtype[Any]] = {  # Any: one of three element types
    "BF16": np.dtype("<u2"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
}


@dataclass(frozen=True, slots=True)
class TensorLocation:
    path: Path
    dtype: str  # a key of _STORED_AS
    shape: tuple[int, ...]
    offset: int  # bytes from the start of the file


class Checkpoint:
    """It finds all tensors of a directory by name."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._tensors: dict[str, TensorLocation] = {}
        for path in find_files(directory):
            self._tensors |= read_header(path)

    def rows(self, name: str, shape: tuple[int, ...]) -> Iterator[NDArray[np.float32]]:
        """Gives the tensor as float32, split along its first axis; `shape` is the expected one."""
        location = self._locate(name, shape)
        row_elements = math.prod(shape[1:])
        rows_per_chunk = max(1, CHUNK_BYTES // (4 * row_elements))
        stored = _STORED_AS[location.dtype]
        with location.path.open("rb") as file:
            file.seek(location.offset)
            for start in range(0, shape[0], rows_per_chunk):
                num_rows = min(rows_per_chunk, shape[0] - start)
                raw = np.fromfile(file, stored, num_rows * row_elements)
                yield to_float32(raw, location.dtype).reshape(num_rows, *shape[1:])

    def _locate(self, name: str, shape: tuple[int, ...]) -> TensorLocation:
        location = self._tensors.get(name)
        if location is None:
            raise ModelLoadError(f"{self._directory}: tensor {name} is missing from the safetensors files")
        if location.shape != shape:
            raise ModelLoadError(
                f"{location.path}: tensor {name} has the shape {list(location.shape)}, "
                f"but config.json asks for {list(shape)}"
            )
        if location.dtype not in _STORED_AS:
            raise ModelLoadError(
                f"{location.path}: tensor {name} is stored as {location.dtype}; supported are {', '.join(_STORED_AS)}"
            )
        return location


def to_float32(raw: NDArray[Any], dtype: str) -> NDArray[np.float32]:  # Any: the three stored types
    if dtype == "BF16":  # the upper half of a float32
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return raw.astype(np.float32, copy=False)


def find_files(directory: Path) -> list[Path]:
    """Returns the checkpoint's files, in the order of their names; each exists."""
    index = directory / INDEX_FILE
    if index.is_file():
        return _sharded_files(index)
    single = directory / SINGLE_FILE
    if single.is_file():
        return [single]
    raise ModelLoadError(f"{directory} has neither {SINGLE_FILE} nor {INDEX_FILE}")


def _sharded_files(index: Path) -> list[Path]:
    try:
        weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        names = sorted(set(weight_map.values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelLoadError(f"{index} cannot be read: {error!r}") from error
    paths = [index.parent / str(name) for name in names]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise ModelLoadError(f"{index.parent} lacks {', '.join(missing)}, which {index.name} names")
    return paths


def read_header(path: Path) -> dict[str, TensorLocation]:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        if start == b"version ":
            raise ModelLoadError(f"{path} is a Git LFS pointer, not the weights: run `git lfs pull`")
        header_length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if 8 + header_length > size:
            raise ModelLoadError(f"{path} is truncated: {size} bytes do not even hold its header")
        encoded = file.read(header_length)
    data_start = 8 + header_length
    try:
        header = json.loads(encoded)
        tensors = {
            name: TensorLocation(path, entry["dtype"], tuple(entry["shape"]), data_start + entry["data_offsets"][0])
            for name, entry in header.items()
            if name != "__metadata__"
        }
        end = data_start + max((header[name]["data_offsets"][1] for name in tensors), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ModelLoadError(f"{path} is not a safetensors file: {error!r}") from error
    if end > size:
        raise ModelLoadError(f"{path} is truncated: its header promises {end} bytes, the file has {size}")
    return tensors
