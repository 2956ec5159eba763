"""Qwen3 MoE is qwen3 with experts in place of the feed-forward layers, in all layers or in some.

Reference: transformers, models/qwen3_moe/modeling_qwen3_moe.py and configuration_qwen3_moe.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    Part,
    build_decoder,
    choose_by_layer,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.experts import ExpertsShape, ExpertTensors, make_experts
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "sliding_window": 4096,
}

SEPARATE = ExpertTensors()


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config)
    shape = shape.with_attention(qk_norm="head", qkv_bias=bias, output_bias=bias)
    has_window = config.flag("use_sliding_window", False) and config.has("sliding_window")
    window = config.size("sliding_window") if has_window else 0
    shape = replace(shape, sliding_windows=(window,) * shape.num_layers)
    return build_decoder(b, shape, feed_forward(config, Routing.read(config)))


def feed_forward(config: HfConfig, routing: Routing, tensors: ExpertTensors = SEPARATE) -> Part:
    """Returns the layers with experts, and the layers without that `mlp_only_layers` names."""
    shape = ExpertsShape.read(config, routing.num_experts, "moe_intermediate_size")
    sparse = make_experts(routing, replace(shape, tensors=tensors))
    return choose_by_layer(
        sparse, make_feed_forward(MlpShape.read(config)), layers_with_experts(config)
    )


def layers_with_experts(config: HfConfig) -> frozenset[int]:
    step = config.size("decoder_sparse_step", 1)
    dense = config.integers("mlp_only_layers") if config.has("mlp_only_layers") else []
    return frozenset(range(step - 1, config.size("num_hidden_layers"), step)) - frozenset(dense)
