"""Qwen3.5 and 3.6 MoE are qwen3_5 with experts, and one that all tokens share, in place of the feed-forward layers.

Reference: transformers, models/qwen3_5_moe/modeling_qwen3_5_moe.py and configuration_qwen3_5_moe.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import Part, build_decoder
from ouzel.backends.openvino.graph.delta_net import DeltaNetShape
from ouzel.backends.openvino.graph.experts import ExpertsShape, glu_of, mixture
from ouzel.backends.openvino.graph.mlp import MlpShape, gated_mlp
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.routing import Routing, route
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.models import qwen3_5_text

DEFAULTS = {
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = qwen3_5_text.with_defaults(config).with_defaults(**DEFAULTS)
    shape = qwen3_5_text.decoder_shape(config)
    mixer = qwen3_5_text.mixer_of(config, b, shape, DeltaNetShape.read(config))
    routing = replace(Routing.read(config), is_normalised=True)
    return build_decoder(b, shape, feed_forward(config, routing), mixer)


def feed_forward(config: HfConfig, routing: Routing) -> Part:
    """The shared expert is weighed by a gate of its own."""
    hidden_size, activation = config.size("hidden_size"), read_activation(config)
    experts = ExpertsShape(
        num_experts=routing.num_experts,
        hidden_size=hidden_size,
        inner_size=config.size("moe_intermediate_size"),
        glu=glu_of(activation),
    )
    shared = MlpShape(
        hidden_size=hidden_size, inner_size=config.size("shared_expert_intermediate_size"), activation=activation
    )

    def part(b: Builder, rows: Node, layer: int) -> Node:
        prefix = f"model.layers.{layer}.mlp."
        chosen = mixture(b, rows, route(b, rows, prefix + "gate", hidden_size, routing), prefix, experts)
        weight = ops.sigmoid(b.linear(rows, prefix + "shared_expert_gate", hidden_size, 1, width="f32"))
        return ops.add(chosen, ops.multiply(weight, gated_mlp(b, rows, prefix + "shared_expert.", shared)))

    return part
