"""Describes the place of a tensor's numbers in a file."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TensorLocation:
    path: Path
    name: str  # the name in the file
    dtype: str  # the type as safetensors spells it
    shape: tuple[int, ...]
    offset: int  # bytes from the start of the file
