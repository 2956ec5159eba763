"""A model directory's weights are in one of several formats."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ouzel.backends.openvino.weights.gguf import GgufCheckpoint
from ouzel.backends.openvino.weights.quantized.formats import (
    method_of,
    quantization_of,
    read_format,
)
from ouzel.backends.openvino.weights.quantized.stored import QuantizedCheckpoint
from ouzel.backends.openvino.weights.safetensors import Checkpoint, find_files, holds_safetensors
from ouzel.backends.openvino.weights.source import Tensors
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.gguf.files import find_gguf, holds_gguf


@dataclass(frozen=True, slots=True)
class StoredWeights:
    files: list[Path]
    open: Callable[[], tuple[Tensors, str]]  # and how they are stored, for the log
    # a name for what is kept under --weights auto; empty: these are plain numbers
    compressed_as: str = ""


def find_weights(directory: Path, config: HfConfig) -> StoredWeights:
    """Takes the language model's config, and safetensors where both are there: the config is
    theirs.

    Raises ModelLoadError where it names a format that cannot be read.
    """
    if not holds_safetensors(directory) and holds_gguf(directory):
        files = find_gguf(directory)
        return StoredWeights(files, lambda: (GgufCheckpoint(files), "GGUF"), "gguf")
    quantization = quantization_of(config)
    if quantization is None:
        return StoredWeights(find_files(directory), lambda: (Checkpoint(directory), ""))

    def open_quantized() -> tuple[Tensors, str]:
        found = read_format(quantization, Checkpoint(directory))
        return QuantizedCheckpoint(found), found.summary

    return StoredWeights(find_files(directory), open_quantized, method_of(quantization))
