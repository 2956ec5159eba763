"""Mixtral is mistral with experts in place of the feed-forward layers.

Reference: transformers, models/mixtral/modeling_mixtral.py and configuration_mixtral.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, equal_windows
from ouzel.backends.openvino.graph.experts import MIXTRAL_TENSORS, ExpertsShape, make_experts
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "rope_theta": 1_000_000.0,
    "rms_norm_eps": 1e-5,
    "num_key_value_heads": 8,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 131072,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = DecoderShape.read(config)
    routing = replace(Routing.read(config), is_normalised=True)
    return build_decoder(
        b,
        replace(shape, sliding_windows=equal_windows(config)),
        make_experts(routing, experts_shape(config, routing), place="block_sparse_moe"),
    )


def experts_shape(config: HfConfig, routing: Routing) -> ExpertsShape:
    return replace(
        ExpertsShape.read(config, routing.num_experts),
        tensors=MIXTRAL_TENSORS,
    )
