"""Granite MoE with a shared MLP is granitemoe with a feed-forward layer beside the experts.

Reference: transformers, models/granitemoeshared/modeling_granitemoeshared.py and configuration_granitemoeshared.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import Part, build_decoder
from ouzel.backends.openvino.graph.mlp import MlpShape, gated_mlp
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.models import granitemoe


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**granitemoe.DEFAULTS)
    return build_decoder(b, granitemoe.decoder_shape(config), feed_forward(config))


def feed_forward(config: HfConfig) -> Part:
    chosen = granitemoe.feed_forward(config)
    if config.integer("shared_intermediate_size", 0) == 0:
        return chosen
    shape = replace(
        MlpShape.read(config),
        inner_size=config.size("shared_intermediate_size"),
        fused_name="input_linear",
        names=("", "", "output_linear"),
    )

    def part(b: Builder, rows: Node, layer: int) -> Node:
        shared = gated_mlp(b, rows, f"model.layers.{layer}.shared_mlp.", shape)
        return ops.add(chosen(b, rows, layer), shared)

    return part
