"""Qwen2 MoE is qwen2 with experts in place of the feed-forward layers, and an expert for all
tokens.

Reference: transformers, models/qwen2_moe/modeling_qwen2_moe.py and configuration_qwen2_moe.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    Part,
    build_decoder,
    choose_by_layer,
    make_feed_forward,
    sliding_windows,
)
from ouzel.backends.openvino.graph.experts import ExpertsShape, make_experts
from ouzel.backends.openvino.graph.mlp import MlpShape, gated_mlp
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.models.qwen3_moe import layers_with_experts
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632,
    "sliding_window": 4096,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = DecoderShape.read(config).with_attention(qkv_bias=config.flag("qkv_bias", True))
    dense = make_feed_forward(MlpShape.read(config))
    parts = choose_by_layer(
        feed_forward(config, Routing.read(config)), dense, layers_with_experts(config)
    )
    return build_decoder(b, replace(shape, sliding_windows=windows(config)), parts)


def windows(config: HfConfig) -> tuple[int, ...]:
    """Returns the window of each layer.

    Without `layer_types` every other layer below `max_window_layers` has a window.
    """
    if not config.flag("use_sliding_window", False):
        return ()
    end = config.integer("max_window_layers", 28)
    return sliding_windows(config, lambda layer: layer % 2 == 0 and layer < end)


def feed_forward(config: HfConfig, routing: Routing) -> Part:
    """Returns the feed-forward half; a gate of its own weights the shared expert."""
    chosen = make_experts(
        routing, ExpertsShape.read(config, routing.num_experts, "moe_intermediate_size")
    )
    shape = MlpShape.read(config, "shared_expert_intermediate_size")

    def part(b: Builder, rows: Node, layer: int) -> Node:
        prefix = f"model.layers.{layer}.mlp."
        shared = gated_mlp(b, rows, prefix + "shared_expert.", shape)
        gate = b.linear(rows, prefix + "shared_expert_gate", shape.hidden_size, 1, width="f32")
        return ops.add(chosen(b, rows, layer), ops.multiply(shared, ops.sigmoid(gate)))

    return part
