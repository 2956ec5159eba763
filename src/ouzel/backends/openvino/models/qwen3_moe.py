"""Qwen3 MoE is qwen3 with experts in place of the feed-forward layers, in all layers or in some.

Reference: transformers, models/qwen3_moe/modeling_qwen3_moe.py and configuration_qwen3_moe.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, Part, build_decoder, feed_forward_of
from ouzel.backends.openvino.graph.experts import ExpertsShape, glu_of, mixture
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.routing import Routing, route
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel

DEFAULTS = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config)
    shape = shape.with_attention(qk_norm="head", qkv_bias=bias, output_bias=bias)
    window = config.size("sliding_window", 4096) if config.flag("use_sliding_window", False) else 0
    return build_decoder(b, replace(shape, sliding_windows=(window,) * shape.num_layers), feed_forward(config))


def feed_forward(config: HfConfig) -> Part:
    routing = Routing.read(config)
    experts = ExpertsShape(
        num_experts=routing.num_experts,
        hidden_size=config.size("hidden_size"),
        inner_size=config.size("moe_intermediate_size"),
        glu=glu_of(read_activation(config)),
    )
    dense, sparse_layers = feed_forward_of(MlpShape.read(config)), layers_with_experts(config)

    def part(b: Builder, rows: Node, layer: int) -> Node:
        if layer not in sparse_layers:
            return dense(b, rows, layer)
        prefix = f"model.layers.{layer}.mlp."
        choice = route(b, rows, prefix + "gate", experts.hidden_size, routing)
        return mixture(b, rows, choice, prefix, experts)

    return part


def layers_with_experts(config: HfConfig) -> frozenset[int]:
    step = config.size("decoder_sparse_step", 1)
    dense = config.integers("mlp_only_layers") if config.has("mlp_only_layers") else []
    return frozenset(range(step - 1, config.size("num_hidden_layers"), step)) - frozenset(dense)
