"""Jais 2 is llama with layer norms, plain feed-forward layers with squared ReLU, and biases.

Reference: transformers, models/jais2/modeling_jais2.py and configuration_jais2.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(layer_norm_eps=1e-5, hidden_act="relu2")
    bias = config.flag("attention_bias", True)
    shape = DecoderShape.read(config).with_attention(qkv_bias=bias, output_bias=bias)
    norm = Norm(config.number("layer_norm_eps"), is_centred=True, has_bias=True)
    mlp = replace(MlpShape.read(config), is_gated=False, has_bias=config.flag("mlp_bias", True))
    return build_decoder(b, replace(shape, norm=norm), make_feed_forward(mlp))
