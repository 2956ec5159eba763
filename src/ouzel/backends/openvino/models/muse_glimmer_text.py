"""Muse Glimmer has gates of attention, windows with rotary positions in three of four layers, and
norms without weights over embeddings, queries and keys.

Ouzel serves its language model; pictures are refused. Reference: transformers,
models/muse_glimmer/modeling_muse_glimmer.py and configuration_muse_glimmer.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    LayerNorms,
    Part,
    decoder_layer,
    make_attention,
    make_feed_forward,
    sliding_windows,
    softcapped,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.nodes import scaled
from ouzel.backends.openvino.graph.norms import Norm, normalise
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "head_dim": 128,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 131_072,
    "sliding_window": 2048,
    "final_logit_softcapping": 20.0,
    "qk_scale_factor": 3.87,
    "output_multiplier": 0.19611613513818404,
    "post_norm_eps": 1e-8,
}

NORMS = LayerNorms(before_mlp="pre_feedforward_layernorm")


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = decoder_shape(config)
    size = shape.attention.hidden_size
    layers = replace(shape, norm=replace(shape.norm, plus=1.0), layer_norms=NORMS)
    after = Norm(config.number("post_norm_eps"), plus=1.0)
    halves = (
        add_norm(make_attention(b, shape), "post_attention_layernorm", size, after),
        add_norm(make_feed_forward(mlp_shape(config)), "post_feedforward_layernorm", size, after),
    )
    embedding = b.embedding(
        "model.embed_tokens", shape.vocab_size, size, is_head=shape.tied_embeddings
    )
    x = normalise(b.embed(embedding), shape.norm)
    for layer in range(shape.num_layers):
        x = decoder_layer(b, x, layer, layers, halves)
    x = b.norm(x, shape.final_norm, size, shape.norm)
    head = embedding if shape.tied_embeddings else b.head("lm_head", shape.vocab_size, size)
    logits = scaled(b.logits(x, head), shape.logits_factor)
    return b.language_model(
        softcapped(logits, shape.logits_softcap),
        hidden_size=size,
        vocab_size=shape.vocab_size,
        max_positions=shape.rope.max_positions,
    )


def add_norm(half: Part, name: str, size: int, norm: Norm) -> Part:
    """Returns the half of a layer with a norm after it."""
    return lambda b, rows, layer: b.norm(
        half(b, rows, layer), f"model.layers.{layer}.{name}", size, norm
    )


def decoder_shape(config: HfConfig) -> DecoderShape:
    """Returns the shape; the factor of the normed queries belongs to the scale of the scores."""
    shape = DecoderShape.read(config)
    bias = config.flag("attention_bias", False)
    thetas = read_thetas(config, shape.num_layers)
    shape = shape.with_attention(
        gate="dimension",
        qk_norm="bare head",
        qkv_bias=bias,
        output_bias=bias,
        scale=shape.attention.scale * config.number("qk_scale_factor"),
    )
    shape = replace(
        shape,
        sliding_windows=sliding_windows(
            config, lambda layer: (shape.num_layers - 1 - layer) % 4 != 0
        ),
        logits_factor=config.number("output_multiplier"),
        logits_softcap=config.number("final_logit_softcapping"),
    )
    return shape.without_rope([layer for layer, theta in enumerate(thetas) if theta == 0])


def read_thetas(config: HfConfig, num_layers: int) -> list[float]:
    """Returns a theta for each layer, 0: no positions. Transformers uses `rope_theta` elsewhere."""
    if config.has("layer_rope_theta"):
        return config.numbers("layer_rope_theta", num_layers)
    return [float((num_layers - 1 - layer) % 4 != 0) for layer in range(num_layers)]


def mlp_shape(config: HfConfig) -> MlpShape:
    return replace(
        MlpShape.read(config), activation=read_activation(config, "hidden_activation", "silu")
    )
