"""EXAONE 4 has norms after the halves of a layer, and RMS norms over each head of queries and
keys.

Large checkpoints have windows in three layers of four; the other layers then have no positions.
Reference: transformers, models/exaone4/modeling_exaone4.py and configuration_exaone4.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    NORMS_AFTER,
    DecoderShape,
    build_decoder,
    every_layer_but,
    make_feed_forward,
    sliding_windows,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "num_key_value_heads": 32,
    "sliding_window": 4096,
    "sliding_window_pattern": 4,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    return build_decoder(b, decoder_shape(config), make_feed_forward(MlpShape.read(config)))


def decoder_shape(config: HfConfig) -> DecoderShape:
    config = config.with_defaults(**DEFAULTS)
    shape = DecoderShape.read(config).with_attention(qk_norm="head")
    windows = read_windows(config)
    shape = replace(shape, layer_norms=NORMS_AFTER, sliding_windows=windows)
    if not config.has("sliding_window"):
        return shape
    return shape.without_rope([layer for layer, window in enumerate(windows) if not window])


def read_windows(config: HfConfig) -> tuple[int, ...]:
    if not config.has("sliding_window"):
        return sliding_windows(config, lambda layer: False)
    interval = 1 if config.has("layer_types") else config.size("sliding_window_pattern")
    return sliding_windows(config, every_layer_but(interval))
