"""Writes a safetensors file tensor by tensor.

The header comes first, so all shapes and types must be known before.
"""

import json
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ELEMENT_BYTES = {"BF16": 2, "F16": 2, "F32": 4, "I32": 4, "I64": 8}
ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class OutputTensor:
    name: str
    dtype: str  # the type as safetensors spells it
    shape: tuple[int, ...]
    chunks: Callable[[], Iterable[NDArray[np.generic]]]  # called once, in the order of the tensors

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * ELEMENT_BYTES[self.dtype]


def write_safetensors(path: Path, tensors: Sequence[OutputTensor]) -> int:
    """Writes the file and returns the bytes of all tensors."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    position = 0
    for each in tensors:
        end = position + each.num_bytes
        header[each.name] = {
            "dtype": each.dtype,
            "shape": each.shape,
            "data_offsets": (position, end),
        }
        position = end
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % ALIGNMENT)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for each in tensors:
            begin = file.tell()
            for chunk in each.chunks():
                file.write(np.ascontiguousarray(chunk).data)
            assert file.tell() - begin == each.num_bytes, each.name
    return position
