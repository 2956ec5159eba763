"""Qwen2 and Qwen2.5 are llama with biases on queries, keys and values, and may have sliding windows in upper layers.

Reference: transformers, models/qwen2/modeling_qwen2.py and configuration_qwen2.py.
"""

from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, upper_sliding_windows
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import Weights


def build(config: HfConfig, weights: Weights, encoding: Encoding) -> LanguageModel:
    return build_decoder(
        DecoderShape.read(config, qkv_bias=True, sliding_windows=upper_sliding_windows(config)), weights, encoding
    )
