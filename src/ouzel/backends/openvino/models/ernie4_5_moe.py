"""ERNIE 4.5 MoE has experts in some layers, a shared expert, and rotary coordinates side by side.

Reference: transformers, models/ernie4_5_moe/modeling_ernie4_5_moe.py and
configuration_ernie4_5_moe.py.
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
from ouzel.backends.openvino.graph.experts import ExpertsShape, mixture, with_shared
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.routing import Routing, route
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

DEFAULTS = {
    "rope_theta": 500_000.0,
    "rms_norm_eps": 1e-5,
    "num_key_value_heads": 4,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
    "moe_intermediate_size": 1536,
    "moe_k": 6,
    "moe_num_experts": 64,
    "moe_num_shared_experts": 2,
    "moe_layer_start_index": 1,
    "moe_layer_end_index": -1,
    "moe_layer_interval": 1,
    "moe_norm_min": 1e-12,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    if config.flag("use_bias", False):  # the bias would be in every projection, also in the head
        raise ModelLoadError("config.json: use_bias true is not supported, only false")
    shape = DecoderShape.read(config)
    shape = shape.with_attention(num_paired_dims=shape.attention.head_dim)
    dense = make_feed_forward(MlpShape.read(config))
    return build_decoder(
        b, shape, choose_by_layer(feed_forward(config), dense, layers_with_experts(config))
    )


def layers_with_experts(config: HfConfig) -> frozenset[int]:
    num_layers, interval = config.size("num_hidden_layers"), config.size("moe_layer_interval")
    start, last = config.integer("moe_layer_start_index"), config.integer("moe_layer_end_index")
    end = num_layers if last == -1 else last + 1
    return frozenset(
        layer for layer in range(num_layers) if start <= layer < end and (layer + 1) % interval == 0
    )


def feed_forward(config: HfConfig) -> Part:
    routing = Routing(
        num_experts=config.size("moe_num_experts"),
        num_chosen=config.size("moe_k"),
        is_normalised=True,
        smallest_sum=config.number("moe_norm_min"),
    )
    experts = ExpertsShape.read(config, routing.num_experts, "moe_intermediate_size")
    num_shared = config.integer("moe_num_shared_experts")

    def part(b: Builder, rows: Node, layer: int) -> Node:
        prefix = f"model.layers.{layer}.mlp."
        correction = b.array(prefix + "moe_statics.e_score_correction_bias", 1, routing.num_experts)
        choice = route(
            b, rows, prefix + "gate", experts.hidden_size, routing, correction=correction
        )
        return mixture(b, rows, choice, prefix, experts)

    if num_shared == 0:
        return part
    shared = replace(MlpShape.read(config), inner_size=experts.inner_size * num_shared)
    return with_shared(part, make_feed_forward(shared, "mlp.shared_experts"))
