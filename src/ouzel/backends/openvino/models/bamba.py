"""Bamba has Mamba-2 in most layers, attention in the others, and turns half of each head.

Reference: transformers, models/bamba/modeling_bamba.py and configuration_bamba.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    LayerNorms,
    Part,
    build_decoder,
    choose_by_layer,
    make_attention,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.mamba import MambaShape, make_mamba
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "vocab_size": 128_000,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 262_144,
    "rms_norm_eps": 1e-5,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = decoder_shape(config)
    mlp = replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False))
    return build_decoder(
        b, shape, make_feed_forward(mlp, "feed_forward"), make_mixer(config, b, shape)
    )


def decoder_shape(config: HfConfig) -> DecoderShape:
    # Transformers ignores another share beside the rotary parameters.
    shape = DecoderShape.read(config.with_values(partial_rotary_factor=0.5), rotates_partly=True)
    num_dims = 2 * len(shape.rope.inverse_frequencies)
    if config.size("attn_rotary_emb", num_dims) != num_dims:
        raise config.refuse("attn_rotary_emb", f"{num_dims}")
    bias = config.flag("attention_bias", False)
    return replace(
        shape.with_attention(qkv_bias=bias, output_bias=bias),
        layer_norms=LayerNorms(before_mlp="pre_ff_layernorm"),
        final_norm="model.final_layernorm",
    )


def make_mixer(config: HfConfig, b: Builder, shape: DecoderShape) -> Part:
    """Returns attention in the layers that `attn_layer_indices` lists, Mamba in the others."""
    attends = config.integers("attn_layer_indices") if config.has("attn_layer_indices") else []
    mamba_layer = make_mamba(MambaShape.read(config, shape.norm))
    if not attends:
        return mamba_layer
    return choose_by_layer(make_attention(b, shape), mamba_layer, frozenset(attends))
