"""Reads the variables of CTranslate2's model.bin.

The format, in little-endian order (a string is a u16 with its length, then bytes and a zero byte,
which counts):

    u32 version, string name of the specification, u32 revision, u32 number of variables
    variables   string name, u8 number of dimensions, u32 each, u8 type, u32 bytes, values
    u32 number of aliases
    aliases     string alias, string name of a variable

A matrix `name` of integers has a variable `name_scale` beside it.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path

from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError
from ouzel.gguf.block_types import BLOCK_TYPES, BlockType
from ouzel.whisper_files.file_cursor import FileCursor, open_cursor
from ouzel.whisper_files.files import SPECIFICATION
from ouzel.whisper_files.stored_tensor import StoredTensor, count_bytes, locate_tensor

_VERSIONS = (4, 5, 6)
_MAX_VARIABLES = 2**16
_MAX_DIMENSIONS = 4
_SCALE = "_scale"
_INTEGERS = ("I8", "I16")
_TYPES = {0: 0, 1: 24, 2: 25, 3: 26, 4: 1, 5: 30}  # CTranslate2's number of a type -> GGUF's


@dataclass(slots=True)
class CTranslate2File:
    """The variables of a model: tensors, and integers without dimensions."""

    tensors: dict[str, StoredTensor] = field(default_factory=dict)
    integers: dict[str, int] = field(default_factory=dict)


def read_ctranslate2(path: Path) -> CTranslate2File:
    """Reads the places of a model's variables. Raises ModelLoadError."""
    with open_cursor(path) as cursor:
        if (version := cursor.integer("I")) not in _VERSIONS:
            raise ModelLoadError(f"{path}: version must be 4 to 6, found {version}")
        if (name := _read_string(cursor)) != SPECIFICATION:
            raise ModelLoadError(f"{path} must be a model of {SPECIFICATION}, found {brief(name)}")
        cursor.integer("I")  # the revision
        read = CTranslate2File()
        for _ in range(cursor.count("I", "variables", _MAX_VARIABLES)):
            _read_variable(cursor, read)
        for _ in range(cursor.count("I", "aliases", _MAX_VARIABLES)):
            _read_string(cursor)  # the tied matrix of the logits, which has no name of its own
            _read_string(cursor)
    return CTranslate2File(_join_scales(path, read.tensors), read.integers)


def _read_string(cursor: FileCursor) -> str:
    return cursor.text(cursor.integer("H")).removesuffix("\0")


def _read_variable(cursor: FileCursor, read: CTranslate2File) -> None:
    name = _read_string(cursor)
    where = f"{cursor.path}: variable {brief(name)}"
    shape = tuple(
        cursor.integer("I") for _ in range(cursor.count("B", "dimensions", _MAX_DIMENSIONS))
    )
    number, num_bytes = cursor.integer("B"), cursor.integer("I")
    if number not in _TYPES:
        raise ModelLoadError(f"{where} has the unknown type {number}")
    if name in read.tensors or name in read.integers:
        raise ModelLoadError(f"{where} is in the file twice")
    block_type = BLOCK_TYPES[_TYPES[number]]
    if not shape:
        _check_size(where, num_bytes, block_type.num_bytes)
        value = cursor.take(num_bytes)
        if block_type.name.startswith("I"):
            read.integers[name] = int.from_bytes(value, "little", signed=True)
        elif name.endswith(_SCALE):
            read.tensors[name] = _locate(cursor, name, block_type, (1,), cursor.position)
        return
    stored = _locate(cursor, name, block_type, shape, cursor.position + num_bytes)
    _check_size(where, num_bytes, count_bytes(stored.location))
    cursor.skip(num_bytes)
    read.tensors[name] = stored


def _locate(
    cursor: FileCursor, name: str, block_type: BlockType, shape: tuple[int, ...], end: int
) -> StoredTensor:
    """Returns the tensor that ends at byte `end` of the file."""
    offset = end - math.prod(shape) * block_type.num_bytes
    return StoredTensor(name, locate_tensor(cursor.path, name, block_type, shape, offset))


def _check_size(where: str, num_bytes: int, expected: int) -> None:
    if num_bytes != expected:
        raise ModelLoadError(f"{where} must have {expected} bytes, found {num_bytes}")


def _join_scales(path: Path, tensors: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Puts the scales of integers beside them. Raises ModelLoadError if some are missing."""
    joined = {}
    for name, stored in tensors.items():
        if name.endswith(_SCALE) and name.removesuffix(_SCALE) in tensors:
            continue
        if stored.location.block_type.name not in _INTEGERS or not name.endswith("weight"):
            joined[name] = stored
            continue
        scales = tensors.get(name + _SCALE)
        num_scales = 0 if scales is None else math.prod(scales.shape)
        if scales is None or num_scales not in (1, stored.shape[0]):
            raise ModelLoadError(
                f"{path}: {name}{_SCALE} must have 1 or {stored.shape[0]} values, "
                f"found {num_scales}"
            )
        joined[name] = StoredTensor(name, stored.location, scales.location)
    return joined
