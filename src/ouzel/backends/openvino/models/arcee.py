"""AFM is llama with plain feed-forward layers, whose activation is a squared ReLU.

Reference: transformers, models/arcee/modeling_arcee.py and configuration_arcee.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(rms_norm_eps=1e-5, hidden_act="relu2")
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config).with_attention(qkv_bias=bias, output_bias=bias)
    mlp = replace(MlpShape.read(config), is_gated=False, has_bias=config.flag("mlp_bias", False))
    return build_decoder(b, shape, make_feed_forward(mlp))
