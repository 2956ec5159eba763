"""Granite (dense) is llama with constant factors on embedding, attention, layer halves and logits.

Reference: transformers, models/granite/modeling_granite.py and configuration_granite.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import llama
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

# Checkpoints with a vision encoder (Granite Vision) leave out of `text_config` the values that are
# defaults in transformers.
DEFAULTS = llama.DEFAULTS


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    mlp = replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False))
    return build_decoder(b, decoder_shape(config), make_feed_forward(mlp))


def decoder_shape(config: HfConfig) -> DecoderShape:
    """Reads the shape with the factors, which all Granite families have."""
    bias = config.flag("attention_bias", False)
    logits_scaling = config.number("logits_scaling", 1.0)
    if logits_scaling == 0:
        raise ModelLoadError("config.json: logits_scaling must not be 0")
    shape = DecoderShape.read(config).with_attention(
        qkv_bias=bias, output_bias=bias, scale=config.number("attention_multiplier", 1.0)
    )
    return replace(
        shape,
        embedding_factor=config.number("embedding_multiplier", 1.0),
        scales_images=True,
        residual_factor=config.number("residual_multiplier", 1.0),
        logits_factor=1 / logits_scaling,
    )
