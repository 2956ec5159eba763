"""Feed-forward layers, gated as most families have them."""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node, split
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.library import ops
from ouzel.errors import ModelLoadError


@dataclass(frozen=True, kw_only=True)
class MlpShape:
    hidden_size: int
    inner_size: int
    has_bias: bool = False
    fused_name: str = ""  # of the tensor that holds gate and up, where it is one

    @classmethod
    def read(cls, config: HfConfig) -> "MlpShape":
        if (activation := config.text("hidden_act", "silu")) not in {"silu", "swish"}:
            raise ModelLoadError(f"config.json: hidden_act {activation} is not supported, only silu")
        return cls(hidden_size=config.size("hidden_size"), inner_size=config.size("intermediate_size"))


def gated_mlp(b: Builder, rows: Node, prefix: str, shape: MlpShape) -> Node:
    """down(silu(gate(x)) * up(x)), [T, hidden_size] to the same."""
    hidden, inner = shape.hidden_size, shape.inner_size
    if shape.fused_name:
        gate, up = split(
            b.linear(rows, prefix + shape.fused_name, hidden, 2 * inner, has_bias=shape.has_bias), inner, inner
        )
    else:
        gate = b.linear(rows, prefix + "gate_proj", hidden, inner, has_bias=shape.has_bias)
        up = b.linear(rows, prefix + "up_proj", hidden, inner, has_bias=shape.has_bias)
    return b.linear(ops.multiply(ops.swish(gate), up), prefix + "down_proj", inner, hidden, has_bias=shape.has_bias)
