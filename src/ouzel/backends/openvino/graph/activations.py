"""What `hidden_act` of config.json may name."""

from collections.abc import Callable

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.library import ops
from ouzel.errors import ModelLoadError

Activation = Callable[[Node], Node]


def squared_relu(rows: Node) -> Node:
    positive = ops.relu(rows)
    return ops.multiply(positive, positive)


def gelu_tanh(rows: Node) -> Node:
    return ops.gelu(rows, "tanh")


def gelu(rows: Node) -> Node:
    return ops.gelu(rows, "erf")


ACTIVATIONS: dict[str, Activation] = {
    "silu": ops.swish,
    "swish": ops.swish,
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu2": squared_relu,
}


def read_activation(config: HfConfig, key: str = "hidden_act", default: str = "silu") -> Activation:
    name = config.text(key, default)
    if name not in ACTIVATIONS:
        raise ModelLoadError(f"config.json: {key} {name} is not supported; supported: {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]
