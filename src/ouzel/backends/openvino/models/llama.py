"""This builds Llama 2 and 3, and the many checkpoints that call themselves llama.

Reference: transformers, models/llama/modeling_llama.py.
"""

from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import Weights


def build(config: HfConfig, weights: Weights, encoding: Encoding) -> LanguageModel:
    bias = config.flag("attention_bias", False)
    mlp_bias = config.flag("mlp_bias", False)
    return build_decoder(
        DecoderShape.read(config, qkv_bias=bias, output_bias=bias, mlp_bias=mlp_bias), weights, encoding
    )
