"""Builds the activation functions of feed-forward layers, by their names in config.json."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

from ouzel.backends.openvino.graph.nodes import Node, real
from ouzel.backends.openvino.kernels.gates import GELU_TANH, QUICK_GELU, SILU, Gate
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

# gated units take gate and up; units of layers without gates take up alone
Unit = Callable[..., Node]
Activation = Literal["silu", "gelu", "gelu_tanh", "quick_gelu", "relu", "relu2"]

_NAMES: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "relu": "relu",
    "relu2": "relu2",
}


def read_activation(config: HfConfig, key: str = "hidden_act", default: str = "silu") -> Activation:
    name = config.text(key, default)
    if name not in _NAMES:
        raise ModelLoadError(
            f"{config.source}: {key} {name} is not supported; supported: {', '.join(_NAMES)}"
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
        case "relu":
            return ops.relu(rows)
        case "relu2":
            rectified = ops.relu(rows)
            return ops.multiply(rectified, rectified)


@dataclass(frozen=True, kw_only=True)
class GatedUnit:
    """Computes activation(gate) * (up + up_offset).

    Before that `gate` is clamped to at most `limit`, and `up` is clamped to [-limit, limit].
    `sigmoid_factor` multiplies the gate in the sigmoid of silu.
    """

    activation: Activation
    sigmoid_factor: float = 1.0
    limit: float = inf
    up_offset: float = 0.0

    def __post_init__(self) -> None:
        assert self.sigmoid_factor == 1 or self.activation == "silu", "only silu has the factor"

    def __call__(self, gate: Node, up: Node) -> Node:
        if self.limit < inf:
            gate = ops.minimum(gate, real(self.limit))
            up = ops.clamp(up, -self.limit, self.limit)
        if self.up_offset:
            up = ops.add(up, real(self.up_offset))
        if self.sigmoid_factor != 1:
            return ops.multiply(up, ops.swish(gate, real(self.sigmoid_factor)))
        return ops.multiply(activate(gate, self.activation), up)

    @property
    def kernel_gate(self) -> Gate | None:
        """Returns the unit in the form of the kernels, None if they cannot compute it."""
        gates = {"silu": SILU, "gelu_tanh": GELU_TANH, "quick_gelu": QUICK_GELU}
        found = gates.get(self.activation)
        if found is None:
            return None
        return Gate(found.linear * self.sigmoid_factor, found.cubic, self.limit, self.up_offset)
