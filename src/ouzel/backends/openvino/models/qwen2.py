"""Qwen2 and Qwen2.5 are llama with biases of queries, keys and values; upper layers may have
windows.

Reference: transformers, models/qwen2/modeling_qwen2.py and configuration_qwen2.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    build_decoder,
    make_feed_forward,
    upper_sliding_windows,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

# Checkpoints with a vision encoder (InternVL) leave out of `text_config` the values that are
# defaults in transformers.
DEFAULTS = {
    "vocab_size": 151_936,
    "hidden_size": 4096,
    "intermediate_size": 22_016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 32_768,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = DecoderShape.read(config).with_attention(qkv_bias=True)
    shape = replace(shape, sliding_windows=upper_sliding_windows(config))
    return build_decoder(b, shape, make_feed_forward(MlpShape.read(config)))
