"""ERNIE 4.5 (dense) is llama with rotary coordinates side by side, and biases everywhere or
nowhere.

Reference: transformers, models/ernie4_5/modeling_ernie4_5.py and configuration_ernie4_5.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_key_value_heads": 2,
    "head_dim": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500_000.0,
    "tie_word_embeddings": True,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("use_bias", False)
    shape = DecoderShape.read(config)
    shape = shape.with_attention(
        qkv_bias=bias, output_bias=bias, num_paired_dims=shape.attention.head_dim
    )
    return build_decoder(b, shape, make_feed_forward(replace(MlpShape.read(config), has_bias=bias)))
