"""OLMo 2 is llama with norms after the halves of a layer, and over whole rows of queries and keys.

Reference: transformers, models/olmo2/modeling_olmo2.py and configuration_olmo2.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    NORMS_AFTER,
    DecoderShape,
    build_decoder,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {"max_position_embeddings": 2048, "rms_norm_eps": 1e-5}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    return build_decoder(
        b, decoder_shape(config.with_defaults(**DEFAULTS)), make_feed_forward(MlpShape.read(config))
    )


def decoder_shape(config: HfConfig) -> DecoderShape:
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config).with_attention(qk_norm="row", qkv_bias=bias, output_bias=bias)
    return replace(shape, layer_norms=NORMS_AFTER)
