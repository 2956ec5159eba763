"""Hunyuan (dense, 0.5B to 7B) is llama with RMS norms over each rotated head of queries and keys.

The norm has separate weights for both coordinates of a rotated pair, so positions are not quite
relative. Reference: transformers, models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py and
configuration_hunyuan_v1_dense.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(rms_norm_eps=1e-5)
    model = build_decoder(b, decoder_shape(config), make_feed_forward(MlpShape.read(config)))
    return replace(model, has_relative_positions=False)


def decoder_shape(config: HfConfig) -> DecoderShape:
    bias = config.flag("attention_bias", False)
    return DecoderShape.read(config).with_attention(
        qkv_bias=bias,
        output_bias=bias,
        qk_norm="turned head",
        qk_norm_names=("query_layernorm", "key_layernorm"),
    )
