"""MiniCPM3 is llama with latent attention, and factors of the embedding, the layers and the logits.

Reference: transformers, models/minicpm3/modeling_minicpm3.py and configuration_minicpm3.py.
"""

import math
from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.latent_attention import (
    LatentShape,
    make_latent_attention,
    read_decoder_shape,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "tie_word_embeddings": True,
    "rms_norm_eps": 1e-5,
    "kv_lora_rank": 256,
    "q_lora_rank": 768,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "scale_emb": 12,
    "scale_depth": 1.4,
    "dim_model_base": 256,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = with_factors(read_decoder_shape(config), config)
    attention = make_latent_attention(b, shape, LatentShape.read(config, is_paired=False))
    mlp = replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False))
    return build_decoder(b, shape, make_feed_forward(mlp), attention)


def with_factors(shape: DecoderShape, config: HfConfig) -> DecoderShape:
    """Returns the shape with the factors; a factor that is null has no effect."""
    scale_depth = config.number("scale_depth", math.sqrt(shape.num_layers))
    hidden_size = shape.attention.hidden_size
    return replace(
        shape,
        embedding_factor=config.number("scale_emb"),
        residual_factor=scale_depth / math.sqrt(shape.num_layers),
        logits_factor=config.number("dim_model_base", hidden_size) / hidden_size,
    )
