"""Helium 1 is llama with rotary coordinates side by side.

Reference: transformers, models/helium/modeling_helium.py and configuration_helium.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_key_value_heads": 20,
    "head_dim": 128,
    "rms_norm_eps": 1e-8,
    "rope_theta": 100_000.0,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = DecoderShape.read(config)
    shape = shape.with_attention(
        qkv_bias=config.flag("attention_bias", False), num_paired_dims=shape.attention.head_dim
    )
    mlp = replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False))
    return build_decoder(b, shape, make_feed_forward(mlp))
