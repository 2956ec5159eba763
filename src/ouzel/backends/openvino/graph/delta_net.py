"""Gated delta nets in the place of attention, as Qwen3-Next and Qwen3.5 have them.

Reference: transformers, models/qwen3_5/modeling_qwen3_5.py and models/qwen3_next/modeling_qwen3_next.py.
"""

from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node, merge_heads, split, split_heads
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.states import causal_conv, delta_rule
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.library import ops
from ouzel.errors import ModelLoadError


@dataclass(frozen=True, kw_only=True)
class DeltaNetShape:
    hidden_size: int
    num_key_heads: int
    num_value_heads: int
    key_dim: int  # of a head
    value_dim: int
    kernel_size: int
    activation: Activation  # behind the convolution
    norm: Norm  # of each head's answer
    is_fused: bool = False  # four projections are two tensors, whose rows come by key head

    @classmethod
    def read(cls, config: HfConfig) -> "DeltaNetShape":
        num_key_heads, num_value_heads = (config.size(f"linear_num_{kind}_heads") for kind in ("key", "value"))
        if num_value_heads % num_key_heads:
            raise ModelLoadError(
                f"config.json: linear_num_value_heads {num_value_heads} is no multiple of linear_num_key_heads "
                f"{num_key_heads}"
            )
        return cls(
            hidden_size=config.size("hidden_size"),
            num_key_heads=num_key_heads,
            num_value_heads=num_value_heads,
            key_dim=config.size("linear_key_head_dim"),
            value_dim=config.size("linear_value_head_dim"),
            kernel_size=config.size("linear_conv_kernel_dim"),
            activation=read_activation(config),
            norm=Norm(config.number("rms_norm_eps", 1e-6)),
        )

    @property
    def key_size(self) -> int:
        return self.num_key_heads * self.key_dim

    @property
    def value_size(self) -> int:
        return self.num_value_heads * self.value_dim

    @property
    def conv_size(self) -> int:
        return 2 * self.key_size + self.value_size


def delta_net(b: Builder, rows: Node, prefix: str, layer: int, shape: DeltaNetShape) -> Node:
    """[T, hidden_size] to the same."""
    mixed, gate, beta, step = project(b, rows, prefix, shape)
    weight = b.array(prefix + "conv1d.weight", shape.conv_size, 1, shape.kernel_size)
    mixed = activate(causal_conv(b.graph, mixed, layer, weight), shape.activation)
    query, key, value = split(mixed, shape.key_size, shape.key_size, shape.value_size)
    heads = (
        split_heads(query, shape.num_key_heads, shape.key_dim),
        split_heads(key, shape.num_key_heads, shape.key_dim),
        split_heads(value, shape.num_value_heads, shape.value_dim),
    )
    rate = b.graph.array(-np.exp(b.array(prefix + "A_log", shape.num_value_heads)))
    step = ops.softplus(ops.add(step, b.graph.array(b.array(prefix + "dt_bias", shape.num_value_heads))))
    log_decay, state_shape = ops.multiply(rate, step), (shape.num_value_heads, shape.value_dim, shape.key_dim)
    answers = delta_rule(b.graph, heads, log_decay, ops.sigmoid(beta), layer, state_shape=state_shape)
    answers = merge_heads(b.norm(answers, prefix + "norm", shape.value_dim, shape.norm))
    gated = ops.multiply(answers, ops.swish(gate))
    return b.linear(gated, prefix + "out_proj", shape.value_size, shape.hidden_size)


def project(b: Builder, rows: Node, prefix: str, shape: DeltaNetShape) -> list[Node]:
    """Returns what is convolved, the gate, beta and the step, of which the last two are small and stay exact."""
    hidden, conv, value, num_heads = shape.hidden_size, shape.conv_size, shape.value_size, shape.num_value_heads
    if not shape.is_fused:
        return [
            b.linear(rows, prefix + "in_proj_qkv", hidden, conv),
            b.linear(rows, prefix + "in_proj_z", hidden, value),
            b.linear(rows, prefix + "in_proj_b", hidden, num_heads, width="f32"),
            b.linear(rows, prefix + "in_proj_a", hidden, num_heads, width="f32"),
        ]
    ratio = num_heads // shape.num_key_heads
    wide = order_by_kind(shape.num_key_heads, shape.key_dim, shape.key_dim, *[ratio * shape.value_dim] * 2)
    small = order_by_kind(shape.num_key_heads, ratio, ratio)
    return [
        *split(b.linear(rows, prefix + "in_proj_qkvz", hidden, conv + value, row_order=wide), conv, value),
        *split(
            b.linear(rows, prefix + "in_proj_ba", hidden, 2 * num_heads, row_order=small, width="f32"),
            num_heads,
            num_heads,
        ),
    ]


def order_by_kind(num_heads: int, *sizes: int) -> tuple[int, ...]:
    """Returns the order that brings rows, which come head by head and in each by kind, to kind by kind."""
    by_head = np.arange(num_heads * sum(sizes)).reshape(num_heads, sum(sizes))
    kinds = np.split(by_head, np.cumsum(sizes)[:-1], axis=1)
    return tuple(np.concatenate([kind.reshape(-1) for kind in kinds]).tolist())
