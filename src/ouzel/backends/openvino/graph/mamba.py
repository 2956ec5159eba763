"""Builds Mamba-2 layers, which replace attention in Granite 4 H, Nemotron-H and Bamba, and stand
beside attention in Falcon-H1.

Reference: transformers, models/granitemoehybrid/modeling_granitemoehybrid.py,
nemotron_h/modeling_nemotron_h.py and falcon_h1/modeling_falcon_h1.py.
"""

import math
from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import Part
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
    input_bias: bool
    output_bias: bool
    activation: Activation  # activation after the convolution
    norm: Norm | None  # norm of each group's gated values; None: they are only gated
    is_norm_first: bool = False  # True: the norm stands before the gate
    smallest_step: float = 0.0
    # factors of the five parts of `in_proj`: gate, x, maps into the state, maps out of it, steps
    input_factors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.num_heads % self.num_groups:
            raise ModelLoadError(
                f"config.json: the {self.num_heads} heads of Mamba layers are no multiple of their "
                f"{self.num_groups} groups"
            )

    @classmethod
    def read(cls, config: HfConfig, norm: Norm, inner_size: int | None = None) -> "MambaShape":
        """Reads the keys that Granite, Bamba and Falcon-H1 write the same way.

        Without `inner_size` the key `mamba_expand` decides on the inner size.
        """
        hidden_size, num_heads = config.size("hidden_size"), config.size("mamba_n_heads", 128)
        inner = inner_size or config.size("mamba_expand", 2) * hidden_size
        is_automatic = config.values.get("mamba_d_head", "auto") == "auto"
        head_dim = inner // num_heads if is_automatic else config.size("mamba_d_head")
        if num_heads * head_dim != inner:
            raise ModelLoadError(
                f"config.json: mamba_n_heads times mamba_d_head must be {inner}, found "
                f"{num_heads} times {head_dim}"
            )
        has_bias = config.flag("mamba_proj_bias", False)
        return cls(
            hidden_size=hidden_size,
            num_heads=num_heads,
            head_dim=head_dim,
            state_size=config.size("mamba_d_state", 256),
            num_groups=config.size("mamba_n_groups", 1),
            kernel_size=config.size("mamba_d_conv", 4),
            conv_bias=config.flag("mamba_conv_bias", True),
            input_bias=has_bias,
            output_bias=has_bias,
            activation=read_activation(config),
            norm=norm,
            smallest_step=smallest_step(config),
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


def make_mamba(shape: MambaShape) -> Part:
    """Returns the layers whose tensors lie below `mamba`."""
    return lambda b, rows, layer: mamba(b, rows, f"model.layers.{layer}.mamba.", layer, shape)


def mamba(b: Builder, rows: Node, prefix: str, layer: int, shape: MambaShape) -> Node:
    """Computes a Mamba-2 layer on rows [T, hidden_size]; returns the same shape."""
    inner, maps, heads = shape.inner_size, shape.map_size, shape.num_heads
    gate, mixed, step = split(project(b, rows, prefix, shape), inner, inner + 2 * maps, heads)
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
    gated = apply_gate(b, merge_heads(ops.add(read, skipped)), gate, prefix + "norm.weight", shape)
    return b.linear(
        gated, prefix + "out_proj", inner, shape.hidden_size, has_bias=shape.output_bias
    )


def project(b: Builder, rows: Node, prefix: str, shape: MambaShape) -> Node:
    """Returns gate, x, maps into the state, maps out of it, and steps, side by side."""
    sizes = (shape.inner_size, shape.inner_size, shape.map_size, shape.map_size, shape.num_heads)
    projected = b.linear(
        rows, prefix + "in_proj", shape.hidden_size, sum(sizes), has_bias=shape.input_bias
    )
    if not shape.input_factors:
        return projected
    factors = np.repeat(np.array(shape.input_factors, np.float32), sizes)
    return ops.multiply(projected, b.graph.array(factors))


def steps(b: Builder, projected: Node, prefix: str, shape: MambaShape) -> Node:
    bias = b.graph.array(b.array(prefix + "dt_bias", shape.num_heads))
    step = ops.softplus(ops.add(projected, bias))
    return ops.maximum(step, real(shape.smallest_step)) if shape.smallest_step else step


def apply_gate(b: Builder, rows: Node, gate: Node, name: str, shape: MambaShape) -> Node:
    """Multiplies the rows by the gate, and normalises each group by itself, before or after."""
    gate = ops.swish(gate)
    if shape.norm is None:
        return ops.multiply(rows, gate)
    if not shape.is_norm_first:
        rows = ops.multiply(rows, gate)
    groups = split_heads(rows, shape.num_groups, shape.inner_size // shape.num_groups)
    weight = b.graph.array(b.array(name, shape.inner_size))
    rows = ops.multiply(merge_heads(normalise(groups, shape.norm)), weight)
    return ops.multiply(rows, gate) if shape.is_norm_first else rows
