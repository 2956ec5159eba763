"""Qwen3 (dense) is qwen2 with RMS norms over each head of queries and keys instead of the biases.

Reference: transformers, models/qwen3/modeling_qwen3.py and configuration_qwen3.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    build_decoder,
    make_feed_forward,
    upper_sliding_windows,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import qwen2
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = qwen2.DEFAULTS | {"head_dim": 128}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    return build_decoder(b, decoder_shape(config), make_feed_forward(MlpShape.read(config)))


def decoder_shape(config: HfConfig) -> DecoderShape:
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config)
    shape = shape.with_attention(qk_norm="head", qkv_bias=bias, output_bias=bias)
    return replace(shape, sliding_windows=upper_sliding_windows(config))
