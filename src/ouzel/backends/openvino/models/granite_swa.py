"""Granite SWASH is granite with windows in three of four layers, attention sinks, and rotary
positions by layer.

Reference: transformers, models/granite_swa/modeling_granite_swa.py and
configuration_granite_swa.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    build_decoder,
    make_feed_forward,
    sliding_windows,
)
from ouzel.backends.openvino.graph.layer_ropes import read_layer_ropes
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import granite
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "sliding_window": 128,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    mlp = replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False))
    return build_decoder(b, decoder_shape(config), make_feed_forward(mlp))


def decoder_shape(config: HfConfig) -> DecoderShape:
    if not config.has("layer_rope_theta"):  # the older key of layers without positions
        config.require(no_rope_layers=[1] * config.size("num_hidden_layers"))
    shape = granite.decoder_shape(config).with_attention(has_sinks=True)
    return replace(
        shape,
        sliding_windows=sliding_windows(config, lambda layer: layer % 4 != 0),
        layer_ropes=read_layer_ropes(config, shape.attention.head_dim),
    )
