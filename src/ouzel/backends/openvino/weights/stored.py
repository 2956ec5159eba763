"""A model directory's weights are in one of several formats."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ouzel.backends.openvino.weights.gguf import GgufCheckpoint
from ouzel.backends.openvino.weights.safetensors import Checkpoint, find_files
from ouzel.backends.openvino.weights.source import Tensors
from ouzel.gguf.files import find_gguf, holds_gguf


@dataclass(frozen=True, slots=True)
class StoredWeights:
    files: list[Path]
    open: Callable[[], Tensors]
    compressed_as: str = ""  # a name for what is kept under --weights auto; empty: these are plain numbers


def find_weights(directory: Path) -> StoredWeights:
    if holds_gguf(directory):
        files = find_gguf(directory)
        return StoredWeights(files, lambda: GgufCheckpoint(files), "gguf")
    return StoredWeights(find_files(directory), lambda: Checkpoint(directory))
