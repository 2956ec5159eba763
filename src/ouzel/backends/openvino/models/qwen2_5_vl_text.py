"""The language model of Qwen2.5-VL is qwen2, but rotates by three positions, equal in a text.

Reference: transformers, models/qwen2_5_vl/modeling_qwen2_5_vl.py and configuration_qwen2_5_vl.py.
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
from ouzel.backends.openvino.graph.rope_axes import with_axes
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "vocab_size": 152_064,
    "hidden_size": 8192,
    "intermediate_size": 29_568,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32_768,
    "max_window_layers": 80,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1_000_000.0,
}
AXES = (16, 24, 24)


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = DecoderShape.read(config).with_attention(qkv_bias=True)
    shape = replace(shape, sliding_windows=upper_sliding_windows(config))
    if b.takes_images:
        shape = replace(shape, rope=with_axes(shape.rope, config, AXES))
    return build_decoder(b, shape, make_feed_forward(MlpShape.read(config)))
