"""Mistral 7B and its kin: llama with an optional sliding window in every layer.

Reference: transformers, models/mistral/modeling_mistral.py.
"""

from ouzel.backends.openvino.decoder import DecoderShape, LanguageModel, build_decoder
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.quantize import Encoding
from ouzel.backends.openvino.weights import Weights


def build(config: HfConfig, weights: Weights, encoding: Encoding) -> LanguageModel:
    window = config.size("sliding_window") if config.has("sliding_window") else 0
    windows = (window,) * config.size("num_hidden_layers")
    return build_decoder(DecoderShape.read(config, sliding_windows=windows), weights, encoding)
