"""Qwen3 (dense) is qwen2 with RMS norms over each head of queries and keys instead of the biases.

Reference: transformers, models/qwen3/modeling_qwen3.py and configuration_qwen3.py.
"""

from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, upper_sliding_windows
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import Weights


def build(config: HfConfig, weights: Weights, encoding: Encoding) -> LanguageModel:
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(
        config,
        qk_norm=True,
        qkv_bias=bias,
        output_bias=bias,
        sliding_windows=upper_sliding_windows(config),
        default_head_dim=128,
    )
    return build_decoder(shape, weights, encoding)
