"""Seed-OSS is llama with biases of queries, keys and values.

Reference: transformers, models/seed_oss/modeling_seed_oss.py and configuration_seed_oss.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {"num_key_value_heads": 8, "head_dim": 128}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = DecoderShape.read(config).with_attention(
        qkv_bias=config.flag("attention_bias", True),
        output_bias=config.flag("attention_out_bias", False),
    )
    mlp = replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False))
    return build_decoder(b, shape, make_feed_forward(mlp))
