"""LFM2 and LFM2.5 have short convolutions in most layers and attention in the others.

Reference: transformers, models/lfm2/modeling_lfm2.py and configuration_lfm2.py.
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
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.short_conv import ShortConvShape, short_conv
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

# Checkpoints with a vision encoder (LFM2-VL) leave out of `text_config` the values that are
# defaults in transformers.
DEFAULTS = {
    "vocab_size": 65_536,
    "hidden_size": 2560,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 128_000,
    "tie_word_embeddings": True,
    "rope_theta": 1_000_000.0,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = decoder_shape(config)
    mlp = MlpShape(
        hidden_size=shape.attention.hidden_size,
        inner_size=inner_size(config),
        names=("w1", "w3", "w2"),
    )
    return build_decoder(
        b, shape, make_feed_forward(mlp, "feed_forward"), make_mixer(config, b, shape)
    )


def decoder_shape(config: HfConfig) -> DecoderShape:
    norm = Norm(config.number("norm_eps", 1e-5))
    shape = DecoderShape.read(config)
    shape = shape.with_attention(
        norm=norm,
        qk_norm="head",
        qk_norm_names=("q_layernorm", "k_layernorm"),
        output_name="out_proj",
    )
    return replace(
        shape,
        norm=norm,
        layer_norms=LayerNorms(before_mixer="operator_norm", before_mlp="ffn_norm"),
        final_norm="model.embedding_norm",
        tied_embeddings=config.flag("tie_embedding", shape.tied_embeddings),
    )


def make_mixer(config: HfConfig, b: Builder, shape: DecoderShape) -> Part:
    attends = attention_layers(config)
    attention = make_attention(b, shape)
    conv = ShortConvShape(
        hidden_size=shape.attention.hidden_size,
        kernel_size=config.size("conv_L_cache", 3),
        has_bias=config.flag("conv_bias", False),
    )

    def mixer(b: Builder, rows: Node, layer: int) -> Node:
        if layer in attends:
            return attention(b, rows, layer)
        return short_conv(b, rows, f"model.layers.{layer}.conv.", layer, conv)

    return mixer


def attention_layers(config: HfConfig) -> set[int]:
    num_layers = config.size("num_hidden_layers")
    if config.has("layer_types"):
        kinds = config.texts("layer_types", num_layers)
        if unknown := set(kinds) - {"full_attention", "conv"}:
            raise ModelLoadError(
                "config.json: layer_types must be full_attention or conv, found "
                f"{', '.join(sorted(unknown))}"
            )
        return {layer for layer, kind in enumerate(kinds) if kind == "full_attention"}
    layers = config.values.get("full_attn_idxs")
    if layers is None:
        return set(range(num_layers))
    return set(config.integers("full_attn_idxs", len(layers) if isinstance(layers, list) else 0))


def inner_size(config: HfConfig) -> int:
    """Returns the size of the feed-forward layers.

    config.json has it before an adjustment, unless it switches the adjustment off.
    """
    size = config.size("block_ff_dim", config.size("intermediate_size", 12288))
    if not config.flag("block_auto_adjust_ff_dim", True):
        return size
    size = int(2 * size / 3)
    if config.values.get("block_ffn_dim_multiplier", 1.0) is None:
        return size
    multiple = config.size("block_multiple_of", 256)
    return -(-int(config.number("block_ffn_dim_multiplier", 1.0) * size) // multiple) * multiple
