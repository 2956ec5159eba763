"""Ministral 3 is mistral with YaRN, and queries that grow with their position.

Reference: transformers, models/ministral3/modeling_ministral3.py and configuration_ministral3.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    build_decoder,
    equal_windows,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.query_scale import QueryScale
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "max_position_embeddings": 262_144,
    "rms_norm_eps": 1e-5,
    "head_dim": 128,
    "num_key_value_heads": 8,
}
ROPE = {
    "rope_type": "yarn",
    "rope_theta": 1e6,
    "factor": 16.0,
    "original_max_position_embeddings": 16384,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    return build_decoder(b, decoder_shape(config), make_feed_forward(MlpShape.read(config)))


def decoder_shape(config: HfConfig) -> DecoderShape:
    config = config.with_defaults(**DEFAULTS)
    parameters = config.section("rope_parameters") or config.section("rope_scaling")
    if parameters is None:
        config = config.with_values(rope_parameters=ROPE)
        parameters = HfConfig(ROPE)
    shape = DecoderShape.read(config)
    return replace(
        shape,
        sliding_windows=equal_windows(config),
        query_scale=QueryScale(
            growth=parameters.number("llama_4_scaling_beta"),
            interval=parameters.size(
                "original_max_position_embeddings", config.size("max_position_embeddings")
            ),
        ),
    )
