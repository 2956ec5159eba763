"""The language model of Qwen3-VL is qwen3, but rotates by three positions, equal in a text.

Reference: transformers, models/qwen3_vl/modeling_qwen3_vl.py and configuration_qwen3_vl.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.rope_axes import with_axes
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {"num_key_value_heads": 32, "head_dim": 128, "rope_theta": 500_000.0}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = decoder_shape(config, turns_by_three=b.takes_images)
    return build_decoder(b, shape, make_feed_forward(MlpShape.read(config)))


def decoder_shape(config: HfConfig, *, turns_by_three: bool) -> DecoderShape:
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config).with_attention(
        qk_norm="head", qkv_bias=bias, output_bias=bias
    )
    if not turns_by_three:
        return shape
    rope = with_axes(shape.rope, config, (24, 20, 20), are_interleaved=True)
    return replace(shape, rope=rope)
