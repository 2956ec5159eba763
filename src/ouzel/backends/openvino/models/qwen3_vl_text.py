"""The language model of Qwen3-VL is qwen3: with text alone, the positions of its three axes are the same.

Reference: transformers, models/qwen3_vl/modeling_qwen3_vl.py and configuration_qwen3_vl.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, feed_forward_of
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel

DEFAULTS = {"num_key_value_heads": 32, "head_dim": 128, "rope_theta": 500_000.0}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config).with_attention(qk_norm="head", qkv_bias=bias, output_bias=bias)
    return build_decoder(b, shape, feed_forward_of(MlpShape.read(config)))
