"""What the files of a model say of its size and shape, for those who ask what is served."""

import math
import struct
from pathlib import Path

import msgspec

from ouzel.checkpoint.model_files import JsonObject, read_config_json

_MAX_HEADER_BYTES = 32 * 2**20  # ten times what a model of 100,000 tensors has
_OF_QUANTISED = (
    ".weight_scale",
    ".weight_scale_inv",
    ".weight_zero_point",
)  # no element of these is a parameter


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """None, and an empty format, is what they do not say."""

    file_format: str = ""  # safetensors, gguf or openvino
    num_bytes: int | None = None  # of the weights as they are stored
    num_parameters: int | None = None
    hidden_size: int | None = None
    num_layers: int | None = None
    num_heads: int | None = None
    num_kv_heads: int | None = None


NO_FACTS = ModelFacts()


class _Tensor(msgspec.Struct):
    shape: list[int] | None = None  # the entry of the file's own metadata has none


def read_model_facts(directory: Path) -> ModelFacts:
    config = read_config_json(directory)
    checkpoint = sorted(directory.glob("*.safetensors"))
    graph = sorted(
        directory.glob("openvino_model.bin")
    )  # the backend takes it first, and safetensors before GGUF
    gguf = [] if checkpoint else sorted(directory.glob("*.gguf"))
    return ModelFacts(
        file_format="openvino"
        if graph
        else "gguf"
        if gguf
        else "safetensors"
        if checkpoint
        else "",
        num_bytes=sum(path.stat().st_size for path in graph or gguf or checkpoint) or None,
        num_parameters=None if graph or gguf else _num_parameters(checkpoint),
        hidden_size=_count(config, "hidden_size"),
        num_layers=_count(config, "num_hidden_layers"),
        num_heads=_count(config, "num_attention_heads"),
        num_kv_heads=_count(config, "num_key_value_heads"),
    )


def _count(config: JsonObject, key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _num_parameters(paths: list[Path]) -> int | None:
    """Returns None where a file is not what it should be: the backend says what is wrong with it."""
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
        if tensor.shape is not None and not name.endswith(_OF_QUANTISED)
    )
