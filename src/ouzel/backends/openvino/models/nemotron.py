"""Nemotron and Minitron store norms minus one, rotate half of each head, and use squared ReLU.

Reference: transformers, models/nemotron/modeling_nemotron.py and configuration_nemotron.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {"norm_eps": 1e-5, "hidden_act": "relu2", "partial_rotary_factor": 0.5}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config, rotates_partly=True).with_attention(
        qkv_bias=bias, output_bias=bias
    )
    norm = Norm(config.number("norm_eps"), plus=1.0, is_centred=True, has_bias=True)
    mlp = replace(MlpShape.read(config), is_gated=False, has_bias=config.flag("mlp_bias", False))
    return build_decoder(b, replace(shape, norm=norm), make_feed_forward(mlp))
