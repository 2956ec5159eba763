"""The language model of PaddleOCR-VL is ernie4_5 with llama's rotary pairs, by three positions.

Reference: transformers, models/paddleocr_vl/modeling_paddleocr_vl.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.rope_axes import with_axes
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models.ernie4_5 import DEFAULTS
from ouzel.checkpoint.hf_config import HfConfig


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("use_bias", False)
    shape = DecoderShape.read(config).with_attention(qkv_bias=bias, output_bias=bias)
    if b.takes_images:
        shape = replace(shape, rope=with_axes(shape.rope, config, (16, 24, 24)))
    return build_decoder(b, shape, make_feed_forward(replace(MlpShape.read(config), has_bias=bias)))
