"""Writes files as torch.save does, without torch."""

import pickle
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]  # Any: one of the element types
_STORAGES = {"float32": "FloatStorage", "float16": "HalfStorage", "int64": "LongStorage"}


@dataclass(frozen=True)
class Rebuilt:
    """Pickles as the call of a function with arguments."""

    function: str
    arguments: tuple[object, ...]


@dataclass(frozen=True)
class Storage:
    kind: str  # the name of its class in torch
    key: str
    size: int


def encode(value: object) -> bytes:
    """Pickles the kinds of objects that files of torch have."""
    match value:
        case tuple():
            return pickle.MARK + b"".join(map(encode, value)) + pickle.TUPLE
        case list():
            return pickle.EMPTY_LIST + pickle.MARK + b"".join(map(encode, value)) + pickle.APPENDS
        case dict():
            items = b"".join(encode(key) + encode(each) for key, each in value.items())
            return pickle.EMPTY_DICT + pickle.MARK + items + pickle.SETITEMS
        case Rebuilt(function, arguments):
            return _encode_name(function) + encode(arguments) + pickle.REDUCE
        case Storage(kind, key, size):
            identity = encode("storage") + _encode_name(f"torch.{kind}")
            identity += b"".join(map(encode, (key, "cpu", size)))
            return pickle.MARK + identity + pickle.TUPLE + pickle.BINPERSID
        case _:
            return _encode_plain(value)


def _encode_plain(value: object) -> bytes:
    match value:
        case bool():
            return pickle.NEWTRUE if value else pickle.NEWFALSE
        case int():
            return pickle.BININT + struct.pack("<i", value)
        case str():
            return pickle.BINUNICODE + struct.pack("<I", len(value)) + value.encode()
    raise TypeError(f"torch saves no {type(value).__name__}")


def _encode_name(name: str) -> bytes:
    module, _, last = name.rpartition(".")
    return pickle.GLOBAL + f"{module}\n{last}\n".encode()


def save_state(path: Path, state: object, storages: dict[str, bytes]) -> None:
    """Writes an archive with the pickle of an object and the bytes of its storages."""
    with zipfile.ZipFile(path, "w") as archive:
        pickled = pickle.PROTO + b"\x02" + encode(state) + pickle.STOP
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", "little")
        for key, content in storages.items():
            archive.writestr(f"archive/data/{key}", content)


def save_arrays(path: Path, arrays: Arrays) -> None:
    state = {name: make_tensor(array, str(key)) for key, (name, array) in enumerate(arrays.items())}
    save_state(
        path, state, {str(key): array.tobytes() for key, array in enumerate(arrays.values())}
    )


def make_tensor(array: NDArray[Any], key: str, begin: int = 0) -> Rebuilt:
    storage = Storage(_STORAGES[array.dtype.name], key, array.size)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    no_hooks = Rebuilt("collections.OrderedDict", ())
    return Rebuilt(
        "torch._utils._rebuild_tensor_v2",
        (storage, begin, array.shape, strides, False, no_hooks),
    )
