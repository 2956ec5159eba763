"""Describes a tensor of a Whisper file."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError
from ouzel.gguf.block_types import BlockType
from ouzel.gguf.file import TensorLocation


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor, and the scales of its integers: a value is the integer divided by its scale.

    There is one scale for all integers, or one for each index of the first axis.
    """

    name: str  # the name in the file
    location: TensorLocation
    scales: TensorLocation | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.location.shape

    def split(self, count: int) -> list["StoredTensor"]:
        """Splits the tensor into equal parts along its first axis. Raises ModelLoadError."""
        if self.shape[0] % count:
            raise ModelLoadError(
                f"{self.location.path}: tensor {self.name} must consist of {count} parts, "
                f"found the shape {list(self.shape)}"
            )
        size = self.shape[0] // count
        return [self._part(part * size, size) for part in range(count)]

    def _part(self, begin: int, size: int) -> "StoredTensor":
        scales = self.scales
        if scales is not None and math.prod(scales.shape) > 1:
            scales = _cut(scales, begin, size)
        return replace(self, location=_cut(self.location, begin, size), scales=scales)


def _cut(location: TensorLocation, begin: int, size: int) -> TensorLocation:
    _, *inner = location.shape
    block = location.block_type
    skipped = begin * math.prod(inner) // block.num_values * block.num_bytes
    return replace(location, shape=(size, *inner), offset=location.offset + skipped)


def locate_tensor(
    path: Path, name: str, block_type: BlockType, shape: tuple[int, ...], offset: int
) -> TensorLocation:
    """Returns a location whose rows are whole blocks. Raises ModelLoadError."""
    if min(shape) < 1 or shape[-1] % block_type.num_values:
        raise ModelLoadError(
            f"{path}: tensor {brief(name)} has the shape {brief(shape)}, "
            f"but a row must consist of whole blocks of {block_type.name}"
        )
    return TensorLocation(path, block_type, shape, offset)


def count_bytes(location: TensorLocation) -> int:
    block = location.block_type
    return math.prod(location.shape) // block.num_values * block.num_bytes
