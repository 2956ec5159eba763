"""Reads the tensors of a Hugging Face checkpoint from safetensors files, a few rows at a time.

The format (https://github.com/huggingface/safetensors): a u64 with the header's length, the header
as JSON (name -> dtype, shape, data_offsets relative to its end), then the bytes. Sharded
checkpoints have model.safetensors.index.json, whose weight_map gives the file of each tensor. Rows
are read with plain file reads rather than a mapping, so that a checkpoint larger than the memory
never counts as resident.

Headers come from strangers and are checked: the tensors of a file lie one after the other and fill
it, each is as long as its shape says, and shards lie beside their index, as the format demands. So
Ouzel reads no bytes outside of the data, and no byte twice.
"""

import math
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.backends.openvino.weights.plain_names import plain_name
from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.backends.openvino.weights.torch_files import read_torch_file
from ouzel.checkpoint.model_files import brief
from ouzel.checkpoint.weight_files import TORCH_SUFFIX, WEIGHT_FILES
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import advance_stage

# bytes of the float32 rows in a chunk: they stay in the processor's last cache
CHUNK_BYTES = 8 * 2**20
# bytes of a header or an index: ten times as many as for a model of 100,000 tensors
MAX_HEADER_BYTES = 32 * 2**20
PLAIN_TYPES = ("BF16", "F16", "F32")
_TOKEN_LISTS = (".token_ordering",)  # ends of the names of tensors that hold numbers of tokens
_READ_AS: dict[str, np.dtype[Any]] = {  # Any: one of many element types
    "BF16": np.dtype("<u2"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F8_E4M3": np.dtype("u1"),
    "F8_E8M0": np.dtype("u1"),
}
_ELEMENT_BYTES = {"BOOL": 1, "I16": 2, "U16": 2, "U32": 4, "F64": 8, "U64": 8} | {
    name: stored.itemsize for name, stored in _READ_AS.items()
}

Count = Annotated[int, msgspec.Meta(ge=0)]


class HeaderEntry(msgspec.Struct, frozen=True):
    dtype: str
    shape: Annotated[tuple[Count, ...], msgspec.Meta(max_length=16)]
    data_offsets: tuple[Count, Count]


class ShardIndex(msgspec.Struct, frozen=True):
    weight_map: dict[str, str]


_decode_entry = msgspec.json.Decoder(HeaderEntry).decode
_decode_index = msgspec.json.Decoder(ShardIndex).decode


class Checkpoint:
    """Finds the tensors of a directory by name; implements `Tensors`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._tensors: dict[str, TensorLocation] = {}
        for path in find_files(directory):
            read = read_torch_file if path.suffix == TORCH_SUFFIX else read_header
            for name, location in read(path).items():
                plain = plain_name(name)
                if self._tensors.setdefault(plain, location) is not location:
                    raise ModelLoadError(
                        f"{path} has tensor {brief(plain)[1:-1]} twice, once as {brief(name)}"
                    )

    def names(self) -> Iterable[str]:
        return self._tensors

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        tensor = self._as_stored(tensor)
        self.locate(tensor.name, tensor.shape, *_types(tensor))
        return None

    def stored_form(self, tensor: Tensor) -> StoredForm | None:
        return None

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        raise AssertionError(f"{tensor.name} is stored as plain numbers")

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        """Yields the tensor as float32, split along its first axis.

        Of numbers of tokens, which are integers, float32 holds those up to 2^24.
        """
        tensor = self._as_stored(tensor)
        location = self.locate(tensor.name, tensor.shape, *_types(tensor))
        if tensor.is_transposed:
            for whole in read_chunks(location, math.prod(tensor.shape[-2:])):
                for each in whole:
                    yield to_float32(each, location.dtype).reshape(tensor.shape[-2:]).T
        else:
            # The product is the number of columns, and 1 for a tensor without dimensions.
            for chunk in read_chunks(location, math.prod(tensor.shape[-1:])):
                yield to_float32(chunk, location.dtype)

    def find(self, name: str) -> TensorLocation | None:
        return self._tensors.get(name)

    def _as_stored(self, tensor: Tensor) -> Tensor:
        """Returns the tensor with the order of its last two dimensions in the file."""
        if tensor.witness is None:
            return tensor
        location = self._tensors.get(tensor.witness.name)
        if location is None or location.shape != swap_last(tensor.witness.shape):
            return tensor
        return Tensor(tensor.name, swap_last(tensor.shape), not tensor.is_transposed)

    def locate(self, name: str, shape: tuple[int, ...], *dtypes: str) -> TensorLocation:
        """Returns the place of a tensor.

        Raises ModelLoadError if the tensor is missing or has another shape or type.
        """
        location = self._tensors.get(name)
        if location is None:
            raise ModelLoadError(
                f"{self._directory}: tensor {name} is missing from the files of weights"
                + describe_other_prefix(name, self._tensors)
            )
        if location.shape != shape:
            raise ModelLoadError(
                f"{location.path}: tensor {name} has the shape {list(location.shape)}, "
                f"but config.json requires {list(shape)}"
            )
        if location.dtype not in dtypes:
            raise ModelLoadError(
                f"{location.path}: tensor {name} is stored as {location.dtype}; supported are "
                f"{', '.join(dtypes)}"
            )
        return location

    def read(self, name: str, shape: tuple[int, ...], *dtypes: str) -> NDArray[Any]:
        """Returns a small tensor as a whole, with its elements as they are stored."""
        location = self.locate(name, shape, *dtypes)
        with location.path.open("rb") as file:
            file.seek(location.offset)
            return np.fromfile(file, _READ_AS[location.dtype], math.prod(shape)).reshape(shape)

    def floats(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        return to_float32(self.read(name, shape, *PLAIN_TYPES), self._tensors[name].dtype)


def _types(tensor: Tensor) -> tuple[str, ...]:
    """Returns the types that a tensor may be stored as."""
    return ("I64",) if tensor.name.endswith(_TOKEN_LISTS) else PLAIN_TYPES


def swap_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Swaps the last two dimensions of a shape."""
    *outer, rows, columns = shape
    return (*outer, columns, rows)


def describe_other_prefix(name: str, stored: Iterable[str]) -> str:
    """Returns a part of an error message if a tensor is stored under a longer or shorter name."""
    found = next(
        (other for other in stored if other.endswith(f".{name}") or name.endswith(f".{other}")),
        None,
    )
    if found is None:
        return ""
    return f", which have {found}: the names of this checkpoint have another prefix"


def chunk_rows(columns: int) -> int:
    """Returns the rows of a matrix in one chunk."""
    return max(1, CHUNK_BYTES // (4 * columns))


def read_chunks(
    location: TensorLocation, row: int, rows_per_chunk: int = 0
) -> Iterator[NDArray[Any]]:
    """Yields [some rows, row], with elements as they are stored."""
    rows_per_chunk = rows_per_chunk or chunk_rows(row)
    stored, num_rows = _READ_AS[location.dtype], math.prod(location.shape) // row
    with location.path.open("rb") as file:
        file.seek(location.offset)
        for start in range(0, num_rows, rows_per_chunk):
            num_chunk = min(rows_per_chunk, num_rows - start)
            yield np.fromfile(file, stored, num_chunk * row).reshape(num_chunk, row)
            advance_stage(num_chunk * row * stored.itemsize)


def to_float32(raw: NDArray[Any], dtype: str) -> NDArray[np.float32]:  # Any: an element type
    if dtype == "BF16":  # the upper half of a float32
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return raw.astype(np.float32, copy=False)


def holds_tensors(directory: Path) -> bool:
    """Tells whether the directory has safetensors, or files of `torch.save`."""
    return any((directory / name).is_file() for name in WEIGHT_FILES)


def find_files(directory: Path) -> list[Path]:
    """Returns the checkpoint's files, in the order of their names; each exists.

    Safetensors go before files of `torch.save`. Raises ModelLoadError.
    """
    for name in WEIGHT_FILES:
        path = directory / name
        if path.is_file():
            return _sharded_files(path) if path.suffix == ".json" else [path]
    raise ModelLoadError(f"{directory} has none of {', '.join(WEIGHT_FILES)}")


def _sharded_files(index: Path) -> list[Path]:
    if (size := index.stat().st_size) > MAX_HEADER_BYTES:
        raise ModelLoadError(f"{index} must have <= {MAX_HEADER_BYTES} bytes, found {size}")
    try:
        names = sorted(set(_decode_index(index.read_bytes()).weight_map.values()))
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise ModelLoadError(f"{index} cannot be read: {error!r}") from error
    for name in names:
        if name != Path(name).name or "\0" in name or "\\" in name:
            raise ModelLoadError(
                f"{index}: weight_map must name files of its own directory, found {brief(name)}"
            )
    paths = [index.parent / name for name in names]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        raise ModelLoadError(
            f"{index.parent} lacks files that {index.name} names: {', '.join(missing[:8])}{more}"
        )
    return paths


def read_header(path: Path) -> dict[str, TensorLocation]:
    """Reads the header of a file. Raises ModelLoadError if the file is damaged."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        if start == b"version ":
            raise ModelLoadError(
                f"{path} is a Git LFS pointer, not the weights: run `git lfs pull`"
            )
        header_length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if 8 + header_length > size:
            raise ModelLoadError(f"{path} is truncated: its {size} bytes end within its header")
        if header_length > MAX_HEADER_BYTES:
            raise ModelLoadError(
                f"{path}: its header must have <= {MAX_HEADER_BYTES} bytes, found {header_length}"
            )
        encoded = file.read(header_length)
    data_start = 8 + header_length
    try:
        header = msgspec.json.decode(encoded, type=dict[str, msgspec.Raw])
        header.pop("__metadata__", None)
        entries = {name: _decode_entry(entry) for name, entry in header.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelLoadError(f"{path} is not a safetensors file: {error!r}") from error
    check_layout(path, entries, size - data_start)
    return {
        name: TensorLocation(
            path, name, entry.dtype, entry.shape, data_start + entry.data_offsets[0]
        )
        for name, entry in entries.items()
    }


def check_layout(path: Path, entries: dict[str, HeaderEntry], num_bytes: int) -> None:
    """Raises ModelLoadError unless the tensors fill the `num_bytes` after the header without
    overlaps.
    """
    position = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        begin, end = entry.data_offsets
        where = f"{path}: tensor {brief(name)}"
        if end > num_bytes:
            raise ModelLoadError(
                f"{where} is truncated: it ends at byte {end} of the data, the file has {num_bytes}"
            )
        if begin != position or end < begin:
            raise ModelLoadError(
                f"{where} must begin at byte {position} of the data, found {begin} to {end}"
            )
        element_bytes = _ELEMENT_BYTES.get(entry.dtype)
        if element_bytes is not None and end - begin != math.prod(entry.shape) * element_bytes:
            raise ModelLoadError(
                f"{where} has {end - begin} bytes, which do not fit its shape "
                f"{brief(entry.shape)} in {entry.dtype}"
            )
        position = end
    if position != num_bytes:
        raise ModelLoadError(
            f"{path}: its tensors must fill {num_bytes} bytes, they fill {position}"
        )
