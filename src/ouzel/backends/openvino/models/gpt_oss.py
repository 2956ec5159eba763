"""gpt-oss has experts in every layer, attention sinks, windows in every other layer, biases
everywhere.

Reference: transformers, models/gpt_oss/modeling_gpt_oss.py and configuration_gpt_oss.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import GatedUnit
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    build_decoder,
    every_layer_but,
    sliding_windows,
)
from ouzel.backends.openvino.graph.experts import ExpertsShape, ExpertTensors, mixture
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.routing import Routing, route
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "rope_theta": 150_000.0,
    "rms_norm_eps": 1e-5,
    "head_dim": 64,
    "num_key_value_heads": 8,
    "num_experts": 128,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "max_position_embeddings": 131072,
}
YARN = {
    "rope_type": "yarn",
    "factor": 32.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}
TENSORS = ExpertTensors(are_separate=False, is_transposed=True, is_alternating=True)


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    if not config.has("rope_parameters") and not config.has("rope_scaling"):
        config = HfConfig(config.values | {"rope_scaling": YARN})
    bias = config.flag("attention_bias", True)
    shape = DecoderShape.read(config)
    shape = shape.with_attention(qkv_bias=bias, output_bias=bias, has_sinks=True)
    shape = replace(shape, sliding_windows=sliding_windows(config, every_layer_but(2)))
    routing = replace(Routing.read(config), scores="softmax_of_chosen", has_bias=True)
    experts = ExpertsShape(
        num_experts=routing.num_experts,
        hidden_size=shape.attention.hidden_size,
        inner_size=config.size("intermediate_size"),
        unit=GatedUnit(
            activation="silu",
            sigmoid_factor=config.number("swiglu_alpha", 1.702),
            limit=config.number("swiglu_limit", 7.0),
            up_offset=1.0,
        ),
        tensors=TENSORS,
        has_bias=True,
    )

    def feed_forward(b: Builder, rows: Node, layer: int) -> Node:
        prefix = f"model.layers.{layer}.mlp."
        return mixture(
            b,
            rows,
            route(b, rows, prefix + "router", experts.hidden_size, routing),
            prefix,
            experts,
        )

    return build_decoder(b, shape, feed_forward)
