"""Llama 2 and 3 have the type llama, and so do many other checkpoints.

Reference: transformers, models/llama/modeling_llama.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

# Checkpoints with a vision encoder (LLaVA) leave out of `text_config` the values that are defaults
# in transformers.
DEFAULTS = {
    "vocab_size": 32_000,
    "hidden_size": 4096,
    "intermediate_size": 11_008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config).with_attention(qkv_bias=bias, output_bias=bias)
    mlp = replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False))
    return build_decoder(b, shape, make_feed_forward(mlp))
