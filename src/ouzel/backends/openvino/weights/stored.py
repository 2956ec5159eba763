"""Finds the weights of a model directory, which may have one of several formats."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ouzel.backends.openvino.weights.gguf import GgufCheckpoint
from ouzel.backends.openvino.weights.quantized.formats import (
    find_method,
    read_format,
    read_quantization,
)
from ouzel.backends.openvino.weights.quantized.stored import QuantizedCheckpoint
from ouzel.backends.openvino.weights.safetensors import Checkpoint, find_files, holds_tensors
from ouzel.backends.openvino.weights.source import Tensors
from ouzel.backends.openvino.weights.whisper import WhisperCheckpoint
from ouzel.backends.openvino.weights.whisper_ir import WhisperIr, holds_whisper_ir, list_files
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import read_config_json
from ouzel.gguf.files import find_gguf, holds_gguf, list_projectors
from ouzel.whisper_files.files import find_whisper_file, is_ggml
from ouzel.whisper_files.reader import read_tensors


@dataclass(frozen=True, slots=True)
class StoredWeights:
    files: list[Path]
    open: Callable[[], tuple[Tensors, str]]  # gives the tensors, and their form for the log
    # The name of the quantised form that --weights auto keeps; empty: plain numbers.
    compressed_as: str = ""


def find_weights(directory: Path, config: HfConfig) -> StoredWeights:
    """Finds the weights. A checkpoint goes before GGUF, because config.json belongs to it.

    `config` is the language model's. Raises ModelLoadError if it names a format that Ouzel cannot
    read.
    """
    if not holds_tensors(directory) and holds_gguf(directory):
        files, encoders = find_gguf(directory), _find_encoders(directory)
        return StoredWeights([*files, *encoders], lambda: _open_gguf(files, encoders), "gguf")
    if not holds_tensors(directory) and (file := find_whisper_file(directory)) is not None:
        return _find_whisper(file)
    if not holds_tensors(directory) and holds_whisper_ir(directory):
        return StoredWeights(list_files(directory), lambda: _open_whisper_ir(directory))
    quantization = read_quantization(config)
    if quantization is None:
        return StoredWeights(find_files(directory), lambda: (Checkpoint(directory), ""))

    def open_quantized() -> tuple[Tensors, str]:
        found = read_format(quantization, Checkpoint(directory))
        return QuantizedCheckpoint(found), found.summary

    return StoredWeights(find_files(directory), open_quantized, find_method(quantization))


def _find_encoders(directory: Path) -> list[Path]:
    """Returns the mmproj file of a model that sees, in a list; a text model has none."""
    if "vision_config" not in read_config_json(directory):
        return []
    return list_projectors(directory)


def _open_gguf(files: list[Path], encoders: list[Path]) -> tuple[Tensors, str]:
    checkpoint = GgufCheckpoint(files, encoders)
    return checkpoint, f"GGUF of {', '.join(checkpoint.block_types)}"


def _open_whisper_ir(directory: Path) -> tuple[Tensors, str]:
    checkpoint = WhisperIr(directory)
    return checkpoint, f"OpenVINO IR of {', '.join(checkpoint.types)}"


def _find_whisper(file: Path) -> StoredWeights:
    checkpoint = WhisperCheckpoint(read_tensors(file))
    kind = "GGML" if is_ggml(file) else "CTranslate2"
    form = f"{kind} of {', '.join(checkpoint.block_types)}"
    return StoredWeights([file], lambda: (checkpoint, form), kind if checkpoint.has_blocks else "")
