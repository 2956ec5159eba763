"""Reads the size and the shape of a model from its files, for the lists of models."""

import math
import struct
from pathlib import Path

import msgspec

from ouzel.checkpoint.hf_config import use_common_names
from ouzel.checkpoint.model_files import JsonObject, read_config_json
from ouzel.checkpoint.weight_files import ADAPTER_WEIGHTS

_MAX_HEADER_BYTES = 32 * 2**20  # ten times the header of a model of 100,000 tensors
# Tensors beside quantised weights, which hold no parameters.
_BESIDE_PARAMETERS = (".weight_scale", ".weight_scale_inv", ".weight_zero_point")


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a model; None, or an empty format, where the files do not tell."""

    file_format: str = ""  # safetensors, pytorch, gguf, onnx or openvino
    num_bytes: int | None = None  # the stored size of the weights
    num_parameters: int | None = None
    hidden_size: int | None = None
    num_layers: int | None = None
    num_heads: int | None = None
    num_kv_heads: int | None = None


NO_FACTS = ModelFacts()


class _Tensor(msgspec.Struct):
    shape: list[int] | None = None  # None: the entry of the file's own metadata


def read_model_facts(directory: Path) -> ModelFacts:
    config = read_config_json(directory)
    nested = config.get("text_config")  # the language model of a checkpoint with an encoder
    text = use_common_names(config | nested if isinstance(nested, dict) else config)
    file_format, files = _find_weights(directory)
    return ModelFacts(
        file_format=file_format,
        num_bytes=sum(path.stat().st_size for path in files) or None,
        num_parameters=_num_parameters(files) if file_format in ("safetensors", "") else None,
        hidden_size=_count(text, "hidden_size", "dim"),
        num_layers=_count(text, "num_hidden_layers", "n_layers"),
        num_heads=_count(text, "num_attention_heads", "n_heads"),
        num_kv_heads=_count(text, "num_key_value_heads"),
    )


def _find_weights(directory: Path) -> tuple[str, list[Path]]:
    """Returns the format of the weights and their files; ("", []) if there are none."""
    # The backend prefers earlier formats.
    patterns = {
        "openvino": "openvino_model.bin",
        "safetensors": "*.safetensors",
        "pytorch": "pytorch_model*.bin",
        "gguf": "*.gguf",
        "onnx": "*.onnx",
    }
    found = (
        (name, sorted(path for path in directory.glob(pattern) if path.name != ADAPTER_WEIGHTS))
        for name, pattern in patterns.items()
    )
    return next(((name, files) for name, files in found if files), ("", []))


def _count(config: JsonObject, *names: str) -> int | None:
    """Returns the first of the keys that is a count; DistilBERT has names of its own."""
    counts = (config.get(name) for name in names)
    return next(
        (
            count
            for count in counts
            if isinstance(count, int) and not isinstance(count, bool) and count > 0
        ),
        None,
    )


def _num_parameters(paths: list[Path]) -> int | None:
    """Counts the parameters; returns None for broken files, which the backend reports."""
    try:
        return sum(map(_num_elements, paths)) or None
    except (OSError, struct.error, msgspec.MsgspecError, RecursionError):
        return None


def _num_elements(path: Path) -> int:
    with path.open("rb") as file:
        (num_bytes,) = struct.unpack("<Q", file.read(8))
        header = file.read(min(num_bytes, _MAX_HEADER_BYTES))
    tensors = msgspec.json.decode(header, type=dict[str, _Tensor])
    return sum(
        math.prod(tensor.shape)
        for name, tensor in tensors.items()
        if tensor.shape is not None and not name.endswith(_BESIDE_PARAMETERS)
    )
