"""Builds feed-forward layers: gated, as in most families, or plain."""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node, integers, scaled
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig


@dataclass(frozen=True, kw_only=True)
class MlpShape:
    hidden_size: int
    inner_size: int
    activation: Activation = "silu"
    has_bias: bool = False
    fused_name: str = ""  # name of the tensor that has both gate and up, if there is one
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    is_gated: bool = True
    gate_factor: float = 1.0  # factor of the gate's product, before the activation
    # The gate becomes relu(gate - mean - cutoff * deviation), over its row; None: it stays.
    cutoff: float | None = None

    @classmethod
    def read(cls, config: HfConfig, inner_size: str = "intermediate_size") -> "MlpShape":
        """Reads the keys that most families write the same way; `inner_size` is the key of the
        inner size.
        """
        return cls(
            hidden_size=config.size("hidden_size"),
            inner_size=config.size(inner_size),
            activation=read_activation(config),
        )


def gated_mlp(b: Builder, rows: Node, prefix: str, shape: MlpShape) -> Node:
    """Computes down(activation(gate(x)) * up(x)) on rows [T, hidden_size]; returns the same
    shape.
    """
    hidden, inner = shape.hidden_size, shape.inner_size
    gate_name, up_name, down_name = (prefix + name for name in shape.names)
    if shape.fused_name:
        gate, up = b.linears(
            rows, prefix + shape.fused_name, hidden, (inner, inner), has_bias=shape.has_bias
        )
    else:
        gate = b.linear(rows, gate_name, hidden, inner, has_bias=shape.has_bias)
        up = b.linear(rows, up_name, hidden, inner, has_bias=shape.has_bias)
    gate = scaled(gate, shape.gate_factor)
    if shape.cutoff is not None:
        gate = cut_off(gate, shape.cutoff)
    inner_rows = ops.multiply(activate(gate, shape.activation), up)
    return b.linear(inner_rows, down_name, inner, hidden, has_bias=shape.has_bias)


def cut_off(rows: Node, cutoff: float) -> Node:
    """Subtracts mean + cutoff * standard deviation of each row, and makes negative numbers 0."""
    centred = ops.subtract(rows, ops.reduce_mean(rows, integers(-1), True))
    variance = ops.reduce_mean(ops.multiply(centred, centred), integers(-1), True)
    return ops.relu(ops.subtract(centred, scaled(ops.sqrt(variance), cutoff)))


def plain_mlp(b: Builder, rows: Node, prefix: str, shape: MlpShape) -> Node:
    """Computes down(activation(up(x))) on rows [T, hidden_size]; returns the same shape."""
    _, up_name, down_name = shape.names
    up = b.linear(
        rows, prefix + up_name, shape.hidden_size, shape.inner_size, has_bias=shape.has_bias
    )
    inner_rows = activate(up, shape.activation)
    return b.linear(
        inner_rows, prefix + down_name, shape.inner_size, shape.hidden_size, has_bias=shape.has_bias
    )
