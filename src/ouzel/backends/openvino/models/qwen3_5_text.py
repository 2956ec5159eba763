"""Qwen3.5, 3.6 and 3.8 have gated delta nets in most layers, and gated attention in the others.

The attention rotates a part of each head. In a checkpoint of several modes this is the language
model; the three positions of a token are equal in a text. Reference: transformers,
models/qwen3_5/modeling_qwen3_5.py and configuration_qwen3_5.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    Part,
    build_decoder,
    make_attention,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.delta_net import DeltaNetShape, delta_net
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.prediction import make_predictor
from ouzel.backends.openvino.graph.rope_axes import with_axes
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = with_defaults(config)
    shape = decoder_shape(config, turns_by_three=b.takes_images)
    mixer = make_mixer(config, b, shape, DeltaNetShape.read(config))
    feed_forward = make_feed_forward(MlpShape.read(config))
    return build_decoder(b, shape, feed_forward, mixer, make_predictor(config, shape, feed_forward))


def with_defaults(config: HfConfig) -> HfConfig:
    return config.with_defaults(
        head_dim=256,
        partial_rotary_factor=0.25,
        full_attention_interval=4,
        linear_conv_kernel_dim=4,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        linear_num_key_heads=16,
        linear_num_value_heads=32,
    )


def decoder_shape(config: HfConfig, *, turns_by_three: bool = False) -> DecoderShape:
    """Reads the shape. Each weight of a norm is stored minus one, except in delta nets.

    With `turns_by_three` tokens have three positions.
    """
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config, rotates_partly=True)
    norm = replace(shape.norm, plus=1.0)
    shape = shape.with_attention(
        norm=norm, qk_norm="head", gate="in query", qkv_bias=bias, output_bias=bias
    )
    rope = shape.rope
    if turns_by_three:
        rope = with_axes(rope, config, (11, 11, 10), are_interleaved=True)
    return replace(shape, norm=norm, rope=rope)


def make_mixer(
    config: HfConfig, b: Builder, shape: DecoderShape, delta_shape: DeltaNetShape
) -> Part:
    kinds = layer_kinds(config)
    attention = make_attention(b, shape)

    def mixer(b: Builder, rows: Node, layer: int) -> Node:
        if kinds[layer] == "full_attention":
            return attention(b, rows, layer)
        return delta_net(b, rows, f"model.layers.{layer}.linear_attn.", layer, delta_shape)

    return mixer


def layer_kinds(config: HfConfig) -> list[str]:
    num_layers = config.size("num_hidden_layers")
    if not config.has("layer_types"):
        interval = config.size("full_attention_interval")
        return [
            "linear_attention" if (layer + 1) % interval else "full_attention"
            for layer in range(num_layers)
        ]
    kinds = config.texts("layer_types", num_layers)
    if unknown := set(kinds) - {"linear_attention", "full_attention"}:
        raise ModelLoadError(
            "config.json: layer_types must be linear_attention or full_attention, found "
            + ", ".join(sorted(unknown))
        )
    return kinds
