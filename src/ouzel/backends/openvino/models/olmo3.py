"""OLMo 3 is olmo2 with windows in three layers of four; the other layers have scaled rotary
positions.

Reference: transformers, models/olmo3/modeling_olmo3.py and configuration_olmo3.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    build_decoder,
    every_layer_but,
    make_feed_forward,
    sliding_windows,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.rope import read_ropes_by_kind
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import olmo2
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = olmo2.DEFAULTS | {"sliding_window": 4096, "rope_theta": 500_000.0}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    return build_decoder(b, decoder_shape(config), make_feed_forward(MlpShape.read(config)))


def decoder_shape(config: HfConfig) -> DecoderShape:
    config = config.with_defaults(**DEFAULTS)
    shape = olmo2.decoder_shape(config)
    rope, sliding_rope = read_ropes_by_kind(
        config,
        shape.attention.head_dim,
        sliding_theta=config.number("rope_theta"),
    )
    windows = sliding_windows(config, every_layer_but(4))
    ropes = tuple(sliding_rope if window else rope for window in windows)
    return replace(shape, rope=rope, layer_ropes=ropes, sliding_windows=windows)
