"""Finds the tensors in a file of `torch.save`, such as pytorch_model.bin.

The format (torch 1.6 and later): an uncompressed zip archive. Its `data.pkl` is a pickle of a
dictionary from names to tensors; a tensor names a storage, the place of its first number there, its
shape and its strides. The numbers of the storage KEY are the archive's file `data/KEY`.

A pickle may run any program, so Ouzel does not unpickle. `read_state` follows the few operations
that a dictionary of tensors needs, and calls nothing that the pickle names.
"""

import math
import pickletools
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError

_MAX_PICKLE_BYTES = 32 * 2**20
_MOST_DIMENSIONS = 16
_ENCRYPTED = 1  # a flag of a member
_LOCAL_HEADER_BYTES = 30  # before the name of a member of a zip archive
_ZIP = b"PK\x03\x04"
_DTYPES = {  # storage in torch -> type as safetensors spells it, bytes of a number
    "FloatStorage": ("F32", 4),
    "HalfStorage": ("F16", 2),
    "BFloat16Storage": ("BF16", 2),
    "DoubleStorage": ("F64", 8),
    "LongStorage": ("I64", 8),
    "IntStorage": ("I32", 4),
    "ShortStorage": ("I16", 2),
    "CharStorage": ("I8", 1),
    "ByteStorage": ("U8", 1),
    "BoolStorage": ("BOOL", 1),
}


@dataclass(frozen=True, slots=True)
class _Global:
    """A function or class that the pickle names, such as torch._utils._rebuild_tensor_v2."""

    name: str


@dataclass(frozen=True, slots=True)
class _Storage:
    kind: str  # the last part of its name in torch, such as HalfStorage
    key: str


@dataclass(frozen=True, slots=True)
class _Tensor:
    storage: _Storage
    begin: int  # the first number, counted from the start of the storage
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Mark:
    """Marks a place of the stack."""


def read_torch_file(path: Path) -> dict[str, TensorLocation]:
    """Returns the tensors of a file by name. Raises ModelLoadError if it cannot be read."""
    with path.open("rb") as file:
        if file.read(len(_ZIP)) != _ZIP:
            raise ModelLoadError(
                f"{path} must be a zip archive, as torch 1.6 and later write it; save the model "
                "anew with save_pretrained, which writes safetensors"
            )
    try:
        with zipfile.ZipFile(path) as archive:
            members = {_strip_root(each.filename): each for each in archive.infolist()}
            state = read_state(_read_pickle(path, archive, members))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, RecursionError) as error:
        raise ModelLoadError(f"{path} cannot be read: {error}") from error
    tensors = {name: each for name, each in state.items() if isinstance(each, _Tensor)}
    if not tensors:
        raise ModelLoadError(f"{path} must have a dictionary of tensors, found none")
    return {name: _locate(path, name, each, members) for name, each in tensors.items()}


def read_state(pickled: bytes) -> dict[str, Any]:  # Any: an object of the pickle
    """Returns the dictionary of a pickle without running it.

    Raises ValueError for a pickle of another form.
    """
    state = _Machine().run(pickled)
    if not isinstance(state, dict):
        raise ValueError("its pickle has no dictionary")
    return state


class _Machine:
    """Follows the operations of a pickle; objects of unknown kinds become None."""

    def __init__(self) -> None:
        self._stack: list[Any] = []  # Any: an object of the pickle
        self._memo: dict[int, Any] = {}
        self._operations: dict[str, Callable[[Any], None]] = {
            "NONE": lambda _: self._stack.append(None),
            "NEWTRUE": lambda _: self._stack.append(True),
            "NEWFALSE": lambda _: self._stack.append(False),
            "MARK": lambda _: self._stack.append(_Mark()),
            "EMPTY_TUPLE": lambda _: self._stack.append(()),
            "EMPTY_LIST": lambda _: self._stack.append([]),
            "EMPTY_DICT": lambda _: self._stack.append({}),
            "TUPLE": lambda _: self._stack.append(tuple(self._take_to_mark())),
            "TUPLE1": lambda _: self._stack.append(self._take(1)),
            "TUPLE2": lambda _: self._stack.append(self._take(2)),
            "TUPLE3": lambda _: self._stack.append(self._take(3)),
            "GLOBAL": lambda name: self._stack.append(_Global(name.replace(" ", "."))),
            "STACK_GLOBAL": lambda _: self._stack.append(_Global(".".join(self._take(2)))),
            "BINPERSID": lambda _: self._stack.append(_make_storage(self._stack.pop())),
            "BINPUT": self._remember,
            "LONG_BINPUT": self._remember,
            "MEMOIZE": lambda _: self._remember(len(self._memo)),
            "BINGET": lambda place: self._stack.append(self._memo[place]),
            "LONG_BINGET": lambda place: self._stack.append(self._memo[place]),
            "REDUCE": lambda _: self._stack.append(_call(*self._take(2))),
            "NEWOBJ": lambda _: self._stack.append(_call(*self._take(2))),
            "BUILD": lambda _: self._stack.pop(),  # attributes of an object, such as _metadata
            "SETITEM": lambda _: self._set_items(list(self._take(2))),
            "SETITEMS": lambda _: self._set_items(self._take_to_mark()),
            "APPEND": lambda _: self._append([self._stack.pop()]),
            "APPENDS": lambda _: self._append(self._take_to_mark()),
        }

    def run(self, pickled: bytes) -> Any:  # Any: an object of the pickle
        """Returns the object of a pickle. Raises ValueError."""
        try:
            for operation, argument, _ in pickletools.genops(pickled):
                if operation.name == "STOP":
                    return self._stack.pop()
                if operation.name in ("PROTO", "FRAME"):
                    continue
                follow = self._operations.get(operation.name)
                if follow is not None:
                    follow(argument)
                elif operation.stack_before or argument is None:
                    raise ValueError(f"its pickle has the operation {operation.name}")
                else:  # a number or a text
                    self._stack.append(argument)
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"its pickle is damaged: {error!r}") from error
        raise ValueError("its pickle has no end")

    def _take(self, number: int) -> tuple[Any, ...]:
        if len(self._stack) < number:
            raise IndexError("the stack is empty")
        taken = tuple(self._stack[-number:])
        del self._stack[-number:]
        return taken

    def _take_to_mark(self) -> list[Any]:
        taken: list[Any] = []
        while not isinstance(last := self._stack.pop(), _Mark):
            taken.append(last)
        return taken[::-1]

    def _remember(self, place: int) -> None:
        self._memo[place] = self._stack[-1]

    def _set_items(self, items: list[Any]) -> None:
        # Other keys may be nested without a limit.
        if not all(isinstance(name, str) for name in items[::2]):
            raise ValueError("its pickle has a key that is no text")
        if isinstance(self._stack[-1], dict):
            self._stack[-1].update(zip(items[::2], items[1::2], strict=True))

    def _append(self, items: list[Any]) -> None:
        if isinstance(self._stack[-1], list):
            self._stack[-1] += items


def _call(function: Any, arguments: Any) -> Any:  # Any: an object of the pickle
    """Returns the object that torch makes of the arguments, None for another object."""
    name = function.name if isinstance(function, _Global) else ""
    if name == "torch._utils._rebuild_tensor_v2":
        storage, begin, shape, strides, *_ = arguments
        if not isinstance(storage, _Storage) or not _are_counts((begin, *shape, *strides)):
            raise ValueError("its pickle has a tensor without a place")
        if len(shape) != len(strides) or len(shape) > _MOST_DIMENSIONS:
            raise ValueError(
                f"its pickle has a tensor of {len(shape)} dimensions and {len(strides)} strides; "
                f"{_MOST_DIMENSIONS} are supported"
            )
        return _Tensor(storage, begin, tuple(shape), tuple(strides))
    if name == "torch._utils._rebuild_parameter":
        return arguments[0]
    return {} if name == "collections.OrderedDict" else None


def _make_storage(identity: Any) -> _Storage:  # Any: an object of the pickle
    """Makes a storage of ("storage", class, key, device, number of elements)."""
    kind, key = identity[1], identity[2]
    if identity[0] != "storage" or not isinstance(kind, _Global) or not isinstance(key, str):
        raise ValueError("its pickle has a storage of another form")
    return _Storage(kind.name.rpartition(".")[2], key)


def _are_counts(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, int) and 0 <= value < 2**63 for value in values)


def _strip_root(name: str) -> str:
    """Removes the name of the archive, the first part of all its names."""
    return "/".join(PurePosixPath(name).parts[1:])


def _read_pickle(
    path: Path, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]
) -> bytes:
    member, order = members.get("data.pkl"), members.get("byteorder")
    if member is None:
        raise ModelLoadError(f"{path} must have a data.pkl, as torch.save writes it; it has none")
    if member.file_size > _MAX_PICKLE_BYTES:
        raise ModelLoadError(
            f"{path}: its data.pkl must have <= {_MAX_PICKLE_BYTES} bytes, found {member.file_size}"
        )
    for each in (member, order):
        if each is not None:
            _refuse_packed(path, each)
    if order is not None and (order.file_size > 16 or archive.read(order)[:6] != b"little"):
        raise ModelLoadError(f"{path}: its byteorder must be little")
    return archive.read(member)


def _refuse_packed(path: Path, member: zipfile.ZipInfo) -> None:
    """Raises ModelLoadError for a member that is compressed or encrypted."""
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & _ENCRYPTED:
        raise ModelLoadError(
            f"{path}: {member.filename} must be stored without compression and encryption"
        )


def _locate(
    path: Path, name: str, tensor: _Tensor, members: dict[str, zipfile.ZipInfo]
) -> TensorLocation:
    """Returns the place of a tensor in the file. Raises ModelLoadError."""
    where = f"{path}: tensor {brief(name)}"
    member = members.get(f"data/{tensor.storage.key}")
    if member is None or tensor.storage.kind not in _DTYPES:
        raise ModelLoadError(f"{where} has no numbers of a known type ({tensor.storage.kind})")
    _refuse_packed(path, member)
    if any(
        size > 1 and stride != expected
        for size, stride, expected in zip(
            tensor.shape, tensor.strides, _dense_strides(tensor.shape), strict=True
        )
    ):
        raise ModelLoadError(
            f"{where} must have its numbers in the order of its shape {brief(tensor.shape)}, "
            f"found strides of {brief(tensor.strides)}"
        )
    dtype, number_bytes = _DTYPES[tensor.storage.kind]
    end = (tensor.begin + math.prod(tensor.shape)) * number_bytes
    begin_of_storage = _find_begin(path, member)
    if end > member.file_size or begin_of_storage + end > path.stat().st_size:
        raise ModelLoadError(f"{where} is truncated: it needs {end} bytes of {member.filename}")
    offset = begin_of_storage + tensor.begin * number_bytes
    return TensorLocation(path, name, dtype, tensor.shape, offset)


def _dense_strides(shape: tuple[int, ...]) -> Iterator[int]:
    return (math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _find_begin(path: Path, member: zipfile.ZipInfo) -> int:
    """Returns the place of a member's first byte in the file."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
    if not header.startswith(_ZIP) or len(header) < _LOCAL_HEADER_BYTES:
        raise ModelLoadError(f"{path}: its member {member.filename} is damaged")
    name_bytes, extra_bytes = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
    return member.header_offset + _LOCAL_HEADER_BYTES + name_bytes + extra_bytes
