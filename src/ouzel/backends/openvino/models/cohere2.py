"""In Command R7B and Command A both halves of a layer compute the same rows, after one layer norm.

Three layers of four have windows and rotary positions, the others neither. Reference: transformers,
models/cohere2/modeling_cohere2.py and configuration_cohere2.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    SHARED_NORM,
    DecoderShape,
    build_decoder,
    every_layer_but,
    make_feed_forward,
    sliding_windows,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

# Checkpoints with a vision encoder (Aya Vision) leave out of `text_config` the values that are
# defaults in transformers.
DEFAULTS = {
    "vocab_size": 256_000,
    "hidden_size": 8192,
    "intermediate_size": 22_528,
    "num_hidden_layers": 40,
    "num_attention_heads": 64,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "sliding_window": 4096,
    "sliding_window_pattern": 4,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    return build_decoder(b, decoder_shape(config), make_feed_forward(MlpShape.read(config)))


def decoder_shape(config: HfConfig) -> DecoderShape:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config)
    shape = shape.with_attention(
        qkv_bias=bias, output_bias=bias, num_paired_dims=shape.attention.head_dim
    )
    windows = sliding_windows(config, every_layer_but(config.size("sliding_window_pattern")))
    shape = replace(
        shape,
        norm=Norm(config.number("layer_norm_eps", 1e-5), is_centred=True),
        is_parallel=True,
        layer_norms=SHARED_NORM,
        sliding_windows=windows,
        logits_factor=config.number("logit_scale", 0.0625),
    )
    return shape.without_rope([layer for layer, window in enumerate(windows) if not window])
