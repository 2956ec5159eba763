"""Builds the activation functions of feed-forward layers, by their names in config.json."""

from typing import Literal

from ouzel.backends.openvino.graph.nodes import Node, real
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

Activation = Literal["silu", "gelu", "gelu_tanh", "quick_gelu", "relu2"]

_NAMES: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "relu2": "relu2",
}


def read_activation(config: HfConfig, key: str = "hidden_act", default: str = "silu") -> Activation:
    name = config.text(key, default)
    if name not in _NAMES:
        raise ModelLoadError(
            f"config.json: {key} {name} is not supported; supported: {', '.join(_NAMES)}"
        )
    return _NAMES[name]


def activate(rows: Node, activation: Activation) -> Node:
    match activation:
        case "silu":
            return ops.swish(rows)
        case "gelu":
            return ops.gelu(rows, "erf")
        case "gelu_tanh":
            return ops.gelu(rows, "tanh")
        case "quick_gelu":
            return ops.multiply(rows, ops.sigmoid(ops.multiply(rows, real(1.702))))
        case "relu2":
            rectified = ops.relu(rows)
            return ops.multiply(rectified, rectified)
