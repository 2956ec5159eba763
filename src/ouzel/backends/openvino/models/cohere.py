"""Command R and Aya: both halves of a layer compute the same rows, after one layer norm.

Rotary coordinates lie side by side, and Command R+ has a norm for each head of queries and keys.
Reference: transformers, models/cohere/modeling_cohere.py and configuration_cohere.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    SHARED_NORM,
    DecoderShape,
    build_decoder,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "rope_theta": 500_000.0,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    norm = Norm(config.number("layer_norm_eps", 1e-5), is_centred=True)
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config)
    shape = shape.with_attention(
        norm=norm,
        qk_norm="own head" if config.flag("use_qk_norm", False) else None,
        qkv_bias=bias,
        output_bias=bias,
        num_paired_dims=shape.attention.head_dim,
    )
    shape = replace(
        shape,
        norm=norm,
        is_parallel=True,
        layer_norms=SHARED_NORM,
        logits_factor=config.number("logit_scale", 0.0625),
    )
    return build_decoder(b, shape, make_feed_forward(MlpShape.read(config)))
