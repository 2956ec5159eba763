"""LFM3 has short convolutions, attention in windows and full attention by turns, with gates of
heads.

Reference: transformers, models/lfm3/modeling_lfm3.py and configuration_lfm3.py.
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
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.short_conv import ShortConvShape, short_conv
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models.gemma4_text import make_rope
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

CONV, SLIDING, FULL = "conv", "sliding_attention", "full_attention"
DEFAULTS = {
    "head_dim": 128,
    "num_key_value_heads": 4,
    "max_position_embeddings": 128_000,
    "tie_word_embeddings": True,
    "sliding_window": 256,
    "rope_parameters": {
        SLIDING: {"rope_type": "default", "rope_theta": 10_000.0},
        FULL: {
            "rope_type": "proportional",
            "rope_theta": 1_000_000.0,
            "partial_rotary_factor": 0.5,
        },
    },
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    if not config.has("rope_parameters"):
        config = config.with_values(rope_parameters=DEFAULTS["rope_parameters"])
    kinds = read_kinds(config)
    shape = decoder_shape(config, kinds)
    mlp = replace(MlpShape.read(config), activation="silu", names=("w1", "w3", "w2"))
    convolves = frozenset(layer for layer, kind in enumerate(kinds) if kind == CONV)
    mixer = choose_by_layer(make_conv(config), make_attention(b, shape), convolves)
    return build_decoder(b, shape, make_feed_forward(mlp, "feed_forward"), mixer)


def read_kinds(config: HfConfig) -> list[str]:
    """Returns the kind of each layer; without `layer_types` half of them are convolutions."""
    num_layers = config.size("num_hidden_layers")
    if not config.has("layer_types"):
        usual = (SLIDING, CONV, FULL, CONV)
        return [CONV if layer == 0 else usual[layer % 4] for layer in range(num_layers)]
    kinds = config.texts("layer_types", num_layers)
    if unknown := set(kinds) - {CONV, SLIDING, FULL}:
        raise ModelLoadError(
            f"config.json: layer_types must be {CONV}, {SLIDING} or {FULL}, found "
            f"{', '.join(sorted(unknown))}"
        )
    return kinds


def decoder_shape(config: HfConfig, kinds: list[str]) -> DecoderShape:
    head_dim, bias = config.size("head_dim"), config.flag("attention_bias", False)
    ropes = {kind: make_rope(config, kind, head_dim) for kind in sorted(set(kinds) - {CONV})}
    norm = Norm(config.number("norm_eps", config.number("rms_norm_eps", 1e-5)))
    # The sections of `rope_parameters` belong to kinds of layers, so the common reader has none.
    shape = DecoderShape.read(config.with_values(rope_parameters=None)).with_attention(
        norm=norm,
        qk_norm="head",
        qkv_bias=bias,
        output_bias=bias,
        gate="head" if config.flag("use_attention_gate", True) else None,
    )
    has_outer_norms = config.flag("use_sandwich_norm", True)
    return replace(
        shape,
        norm=norm,
        layer_norms=LayerNorms(
            before_mixer="operator_norm",
            after_mixer="post_operator_norm" if has_outer_norms else "",
            before_mlp="ffn_norm",
            after_mlp="post_ffn_norm" if has_outer_norms else "",
        ),
        final_norm="model.embedding_norm",
        sliding_windows=tuple(
            config.size("sliding_window") if kind == SLIDING else 0 for kind in kinds
        ),
        layer_ropes=tuple(ropes.get(kind) for kind in kinds),
    )


def make_conv(config: HfConfig) -> Part:
    conv = ShortConvShape(
        hidden_size=config.size("hidden_size"),
        kernel_size=config.size("conv_L_cache", 7),
        has_bias=config.flag("conv_bias", False),
    )

    def mixer(b: Builder, rows: Node, layer: int) -> Node:
        return short_conv(b, rows, f"model.layers.{layer}.conv.", layer, conv)

    return mixer
