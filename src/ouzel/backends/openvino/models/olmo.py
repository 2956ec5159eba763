"""OLMo is llama with layer norms that have neither weights nor biases.

Queries, keys and values may be clipped. Reference: transformers, models/olmo/modeling_olmo.py and
configuration_olmo.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

NORM = Norm(1e-5, is_centred=True, has_weight=False)


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(max_position_embeddings=2048)
    bias = config.flag("attention_bias", False)
    limit = config.number("clip_qkv") if config.has("clip_qkv") else None
    shape = DecoderShape.read(config).with_attention(
        qkv_bias=bias, output_bias=bias, qkv_limit=limit
    )
    return build_decoder(b, replace(shape, norm=NORM), make_feed_forward(MlpShape.read(config)))
