"""Builds layers of the first Mamba, where each value of a channel's state decays at its own rate.

The runtime's scan has a rate for each head. So each value of a channel's state is a head of one
value here: all channels with the first value of their states, then all with the second, and so on.
A channel's result is the sum over its heads. Reference: transformers,
models/mamba/modeling_mamba.py and falcon_mamba/modeling_falcon_mamba.py.
"""

from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.activations import Activation, activate
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node, integers, split
from ouzel.backends.openvino.graph.norms import Norm, normalise
from ouzel.backends.openvino.graph.states import causal_conv, selective_scan, state_table
from ouzel.backends.openvino.library import ops


@dataclass(frozen=True, kw_only=True)
class ChannelMambaShape:
    hidden_size: int
    num_channels: int
    state_size: int  # values of a channel's state
    step_rank: int  # inner size of the product that makes the steps
    kernel_size: int
    conv_bias: bool
    projection_bias: bool
    activation: Activation  # activation after the convolution
    norm: Norm | None = None  # norm, without weights, of the steps and of the maps

    @property
    def num_heads(self) -> int:
        return self.state_size * self.num_channels


def channel_mamba(
    b: Builder, rows: Node, prefix: str, layer: int, shape: ChannelMambaShape
) -> Node:
    """Computes a Mamba layer on rows [T, hidden_size]; returns the same shape."""
    channels, bias = shape.num_channels, shape.projection_bias
    projected = b.linear(rows, prefix + "in_proj", shape.hidden_size, 2 * channels, has_bias=bias)
    x, gate = split(projected, channels, channels)
    weight = b.array(prefix + "conv1d.weight", channels, 1, shape.kernel_size)
    conv_bias = b.array(prefix + "conv1d.bias", channels) if shape.conv_bias else None
    x = activate(causal_conv(b.graph, x, layer, weight, conv_bias), shape.activation)
    read = scan_channels(b, x, prefix, layer, shape)
    skipped = ops.multiply(x, b.graph.array(b.array(prefix + "D", channels)))
    gated = ops.multiply(ops.add(read, skipped), activate(gate, shape.activation))
    return b.linear(gated, prefix + "out_proj", channels, shape.hidden_size, has_bias=bias)


def scan_channels(b: Builder, x: Node, prefix: str, layer: int, shape: ChannelMambaShape) -> Node:
    """Returns the values read from the states, [T, channels]."""
    channels, size, rank = shape.num_channels, shape.state_size, shape.step_rank
    sizes = (rank, size, size)
    parts = split(b.linear(x, prefix + "x_proj", channels, sum(sizes)), *sizes)
    if shape.norm is not None:
        parts = [normalise(part, shape.norm) for part in parts]
    step, into, out = parts
    step = ops.softplus(b.linear(step, prefix + "dt_proj", rank, channels, has_bias=True))
    rates = -np.exp(b.array(prefix + "A_log", channels, size))
    repeats = integers(1, size)
    heads = (
        ops.unsqueeze(ops.tile(x, repeats), integers(2)),
        ops.unsqueeze(into, integers(2)),
        ops.unsqueeze(out, integers(2)),
    )
    read = selective_scan(
        heads,
        ops.tile(step, repeats),
        b.graph.array(np.ascontiguousarray(rates.T).reshape(-1)),
        state_table(b.graph, "ssm", layer, shape.num_heads, 1, 1),
        b.graph.state_paging,
    )
    by_value = ops.reshape(read, integers(0, size, channels), True)
    return ops.reduce_sum(by_value, integers(1), False)
