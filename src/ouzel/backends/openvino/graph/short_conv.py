"""Builds short convolutions, gated before and after, which replace attention in LFM2.

Reference: transformers, models/lfm2/modeling_lfm2.py, Lfm2ShortConv.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node, split
from ouzel.backends.openvino.graph.states import causal_conv
from ouzel.backends.openvino.library import ops


@dataclass(frozen=True, kw_only=True)
class ShortConvShape:
    hidden_size: int
    kernel_size: int
    has_bias: bool


def short_conv(b: Builder, rows: Node, prefix: str, layer: int, shape: ShortConvShape) -> Node:
    """Computes out(after * conv(before * x)) on rows [T, hidden_size]; returns the same shape.

    `in_proj` gives `before`, `after` and x.
    """
    hidden = shape.hidden_size
    weight = b.array(prefix + "conv.weight", hidden, 1, shape.kernel_size)
    bias = b.array(prefix + "conv.bias", hidden) if shape.has_bias else None
    projected = b.linear(rows, prefix + "in_proj", hidden, 3 * hidden, has_bias=shape.has_bias)
    before, after, x = split(projected, hidden, hidden, hidden)
    mixed = causal_conv(b.graph, ops.multiply(before, x), layer, weight, bias)
    return b.linear(
        ops.multiply(after, mixed), prefix + "out_proj", hidden, hidden, has_bias=shape.has_bias
    )
