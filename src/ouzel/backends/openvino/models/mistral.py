"""Mistral 7B and its like are llama with an optional sliding window in every layer.

Reference: transformers, models/mistral/modeling_mistral.py.
"""

from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import Weights


def build(config: HfConfig, weights: Weights, encoding: Encoding) -> LanguageModel:
    windows = (sliding_window(config),) * config.size("num_hidden_layers")
    return build_decoder(DecoderShape.read(config, sliding_windows=windows), weights, encoding)


def sliding_window(config: HfConfig) -> int:
    """Returns 0, for none, where it is null; only where the key is missing is it the default of transformers."""
    if "sliding_window" in config.values and not config.has("sliding_window"):
        return 0
    return config.size("sliding_window", 4096)
