"""Falcon-H1 has attention and Mamba-2 side by side in each layer, and factors on all parts.

Reference: transformers, models/falcon_h1/modeling_falcon_h1.py and configuration_falcon_h1.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    LayerNorms,
    Part,
    build_decoder,
    make_attention,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.mamba import MambaShape, make_mamba
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.nodes import Node, scaled
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "vocab_size": 128_000,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "mamba_d_ssm": 1024,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = decoder_shape(config)
    return build_decoder(b, shape, feed_forward(config), make_mixer(config, b, shape))


def decoder_shape(config: HfConfig) -> DecoderShape:
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config)
    # A factor of the keys is a factor of their products with the queries.
    scale = shape.attention.scale * config.number("key_multiplier", 1.0)
    return replace(
        shape.with_attention(qkv_bias=bias, output_bias=bias, scale=scale),
        layer_norms=LayerNorms(before_mlp="pre_ff_layernorm"),
        final_norm="model.final_layernorm",
        embedding_factor=config.number("embedding_multiplier", 1.0),
        logits_factor=config.number("lm_head_multiplier", 1.0),
    )


def feed_forward(config: HfConfig) -> Part:
    gate_factor, output_factor = read_factors(config, "mlp_multipliers", 2)
    shape = replace(
        MlpShape.read(config), has_bias=config.flag("mlp_bias", False), gate_factor=gate_factor
    )
    mlp = make_feed_forward(shape, "feed_forward")
    return lambda b, rows, layer: scaled(mlp(b, rows, layer), output_factor)


def make_mixer(config: HfConfig, b: Builder, shape: DecoderShape) -> Part:
    """Returns the sum of attention and Mamba, each with factors of its input and its output."""
    attention, mamba_layer = make_attention(b, shape), make_mamba(read_mamba(config, shape))
    attention_in, attention_out, mamba_in, mamba_out = (
        config.number(f"{part}_multiplier", 1.0)
        for part in ("attention_in", "attention_out", "ssm_in", "ssm_out")
    )

    def mixer(b: Builder, rows: Node, layer: int) -> Node:
        recurrent = mamba_layer(b, scaled(rows, mamba_in), layer)
        attended = attention(b, scaled(rows, attention_in), layer)
        return ops.add(scaled(recurrent, mamba_out), scaled(attended, attention_out))

    return mixer


def read_mamba(config: HfConfig, shape: DecoderShape) -> MambaShape:
    inner_size = config.size("mamba_d_ssm") if config.has("mamba_d_ssm") else None
    return replace(
        MambaShape.read(config, shape.norm, inner_size),
        norm=shape.norm if config.flag("mamba_rms_norm", False) else None,
        is_norm_first=config.flag("mamba_norm_before_gate", True),
        output_bias=config.flag("projectors_bias", False),
        input_factors=read_factors(config, "ssm_multipliers", 5),
    )


def read_factors(config: HfConfig, key: str, length: int) -> tuple[float, ...]:
    return tuple(config.numbers(key, length)) if config.has(key) else (1.0,) * length
