"""Builds Mamba-2 layers, which replace attention in Granite 4 H and Nemotron-H.

Reference: transformers, models/granitemoehybrid/modeling_granitemoehybrid.py and
nemotron_h/modeling_nemotron_h.py.
"""

import math
from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.activations import Activation, activate
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node, merge_heads, real, split, split_heads
from ouzel.backends.openvino.graph.norms import Norm, normalise
from ouzel.backends.openvino.graph.states import causal_conv, selective_scan, state_table
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError


@dataclass(frozen=True, kw_only=True)
class MambaShape:
    hidden_size: int
    num_heads: int
    head_dim: int
    state_size: int
    num_groups: int  # groups of heads with the same maps into and out of the state
    kernel_size: int
    conv_bias: bool
    projection_bias: bool
    activation: Activation  # activation after the convolution
    norm: Norm  # norm of each group's gated values
    smallest_step: float = 0.0

    def __post_init__(self) -> None:
        if self.num_heads % self.num_groups:
            raise ModelLoadError(
                f"config.json: the {self.num_heads} heads of Mamba layers are no multiple of their "
                f"{self.num_groups} groups"
            )

    @property
    def inner_size(self) -> int:
        return self.num_heads * self.head_dim

    @property
    def map_size(self) -> int:
        return self.num_groups * self.state_size


def smallest_step(config: HfConfig) -> float:
    """Reads the lower end of `time_step_limit`, as transformers 4 or 5 writes it.

    Raises ModelLoadError unless the upper end is infinity.
    """
    limit = config.values.get("time_step_limit")
    if limit is None:
        return 0.0
    if (
        isinstance(limit, list)
        and len(limit) == 2
        and limit[1] in (math.inf, {"__float__": "Infinity"})
    ):
        low = limit[0]
        if isinstance(low, int | float) and not isinstance(low, bool) and 0 <= low < math.inf:
            return float(low)
    raise ModelLoadError(
        f"config.json: time_step_limit must be a number >= 0 and Infinity, found {brief(limit)}"
    )


def mamba(b: Builder, rows: Node, prefix: str, layer: int, shape: MambaShape) -> Node:
    """Computes a Mamba-2 layer on rows [T, hidden_size]; returns the same shape."""
    inner, maps, heads = shape.inner_size, shape.map_size, shape.num_heads
    num_rows = 2 * inner + 2 * maps + heads
    projected = b.linear(
        rows, prefix + "in_proj", shape.hidden_size, num_rows, has_bias=shape.projection_bias
    )
    gate, mixed, step = split(projected, inner, inner + 2 * maps, heads)
    weight = b.array(prefix + "conv1d.weight", inner + 2 * maps, 1, shape.kernel_size)
    bias = b.array(prefix + "conv1d.bias", inner + 2 * maps) if shape.conv_bias else None
    mixed = activate(causal_conv(b.graph, mixed, layer, weight, bias), shape.activation)
    x, into, out = split(mixed, inner, maps, maps)
    x = split_heads(x, heads, shape.head_dim)
    into, out = (split_heads(each, shape.num_groups, shape.state_size) for each in (into, out))
    rate = -np.exp(b.array(prefix + "A_log", heads))
    table = state_table(b.graph, "ssm", layer, heads, shape.head_dim, shape.state_size)
    step = steps(b, step, prefix, shape)
    read = selective_scan((x, into, out), step, b.graph.array(rate), table, b.graph.state_paging)
    skipped = ops.multiply(x, b.graph.array(b.array(prefix + "D", heads).reshape(1, heads, 1)))
    gated = gated_norm(b, merge_heads(ops.add(read, skipped)), gate, prefix + "norm.weight", shape)
    return b.linear(
        gated, prefix + "out_proj", inner, shape.hidden_size, has_bias=shape.projection_bias
    )


def steps(b: Builder, projected: Node, prefix: str, shape: MambaShape) -> Node:
    bias = b.graph.array(b.array(prefix + "dt_bias", shape.num_heads))
    step = ops.softplus(ops.add(projected, bias))
    return ops.maximum(step, real(shape.smallest_step)) if shape.smallest_step else step


def gated_norm(b: Builder, rows: Node, gate: Node, name: str, shape: MambaShape) -> Node:
    """Multiplies the rows by the gate, then normalises each group by itself."""
    groups = split_heads(
        ops.multiply(rows, ops.swish(gate)), shape.num_groups, shape.inner_size // shape.num_groups
    )
    return ops.multiply(
        merge_heads(normalise(groups, shape.norm)), b.graph.array(b.array(name, shape.inner_size))
    )
