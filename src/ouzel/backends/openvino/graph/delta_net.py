"""Builds gated delta nets, which replace attention in Qwen3-Next and Qwen3.5.

Reference: transformers, models/qwen3_5/modeling_qwen3_5.py and
models/qwen3_next/modeling_qwen3_next.py.
"""

from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.delta_rule import DeltaHeads, delta_rule
from ouzel.backends.openvino.graph.nodes import Node, merge_heads, split
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.precision import keep_float32
from ouzel.backends.openvino.graph.states import causal_conv
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError


@dataclass(frozen=True, kw_only=True)
class DeltaNetShape:
    hidden_size: int
    heads: DeltaHeads
    kernel_size: int
    activation: Activation  # activation after the convolution
    norm: Norm  # norm of each head's answer
    is_fused: bool = False  # four projections are two tensors, whose rows come by key head

    @classmethod
    def read(cls, config: HfConfig) -> "DeltaNetShape":
        num_key_heads, num_value_heads = (
            config.size(f"linear_num_{kind}_heads") for kind in ("key", "value")
        )
        if num_value_heads % num_key_heads:
            raise ModelLoadError(
                f"config.json: linear_num_value_heads {num_value_heads} is no multiple of "
                f"linear_num_key_heads {num_key_heads}"
            )
        return cls(
            hidden_size=config.size("hidden_size"),
            heads=DeltaHeads(
                num_key_heads=num_key_heads,
                num_value_heads=num_value_heads,
                key_dim=config.size("linear_key_head_dim"),
                value_dim=config.size("linear_value_head_dim"),
            ),
            kernel_size=config.size("linear_conv_kernel_dim"),
            activation=read_activation(config),
            norm=Norm(config.number("rms_norm_eps", 1e-6)),
        )


def delta_net(b: Builder, rows: Node, prefix: str, layer: int, shape: DeltaNetShape) -> Node:
    """Computes a delta net on rows [T, hidden_size]; returns the same shape."""
    heads = shape.heads
    mixed, gate, beta, log_step = project(b, rows, prefix, shape)
    weight = b.array(prefix + "conv1d.weight", heads.size, 1, shape.kernel_size)
    mixed = activate(causal_conv(b.graph, mixed, layer, weight), shape.activation)
    rate = b.graph.array(-np.exp(b.array(prefix + "A_log", heads.num_value_heads)))
    step = ops.softplus(
        ops.add(log_step, b.graph.array(b.array(prefix + "dt_bias", heads.num_value_heads)))
    )
    rates = ops.concat([ops.multiply(rate, step), ops.sigmoid(beta)], 1)
    keep_float32([rates], beta, log_step)
    answers = delta_rule(b.graph, mixed, rates, layer, heads)
    answers = merge_heads(b.norm(answers, prefix + "norm", heads.value_dim, shape.norm))
    gated = ops.multiply(answers, ops.swish(gate))
    return b.linear(gated, prefix + "out_proj", heads.value_size, shape.hidden_size)


def project(b: Builder, rows: Node, prefix: str, shape: DeltaNetShape) -> list[Node]:
    """Returns the input of the convolution, the gate, beta and the logarithmic step.

    The last two are small and stay in f32.
    """
    heads, hidden = shape.heads, shape.hidden_size
    value, num_heads = heads.value_size, heads.num_value_heads
    if not shape.is_fused:
        return [
            b.linear(rows, prefix + "in_proj_qkv", hidden, heads.size),
            b.linear(rows, prefix + "in_proj_z", hidden, value),
            b.linear(rows, prefix + "in_proj_b", hidden, num_heads, width="f32"),
            b.linear(rows, prefix + "in_proj_a", hidden, num_heads, width="f32"),
        ]
    ratio = num_heads // heads.num_key_heads
    wide = order_by_kind(
        heads.num_key_heads, heads.key_dim, heads.key_dim, *[ratio * heads.value_dim] * 2
    )
    small = order_by_kind(heads.num_key_heads, ratio, ratio)
    return [
        *split(
            b.linear(rows, prefix + "in_proj_qkvz", hidden, heads.size + value, row_order=wide),
            heads.size,
            value,
        ),
        *split(
            b.linear(
                rows, prefix + "in_proj_ba", hidden, 2 * num_heads, row_order=small, width="f32"
            ),
            num_heads,
            num_heads,
        ),
    ]


def order_by_kind(num_heads: int, *sizes: int) -> tuple[int, ...]:
    """Returns the order that brings rows by head, and in each head by kind, to rows by kind."""
    by_head = np.arange(num_heads * sum(sizes)).reshape(num_heads, sum(sizes))
    kinds = np.split(by_head, np.cumsum(sizes)[:-1], axis=1)
    return tuple(np.concatenate([kind.reshape(-1) for kind in kinds]).tolist())
