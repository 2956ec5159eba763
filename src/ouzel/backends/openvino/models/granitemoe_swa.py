"""Granite MoE SWASH is granite_swa with experts in place of the feed-forward layers, or beside
them.

Reference: transformers, models/granitemoe_swa/modeling_granitemoe_swa.py and
configuration_granitemoe_swa.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import Part, build_decoder
from ouzel.backends.openvino.graph.experts import (
    ExpertsShape,
    ExpertTensors,
    make_experts,
    with_shared,
)
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import granite_swa, granitemoe, granitemoeshared
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = granitemoe.DEFAULTS | {"sliding_window": 128}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    return build_decoder(b, granite_swa.decoder_shape(config), feed_forward(config))


def feed_forward(config: HfConfig) -> Part:
    routing = replace(Routing.read(config), scores="softmax_of_chosen")
    experts = replace(
        ExpertsShape.read(config, routing.num_experts), tensors=ExpertTensors(are_separate=False)
    )
    chosen = make_experts(routing, experts, place="block_sparse_moe", router="router")
    if config.integer("shared_intermediate_size", 0) == 0:
        return chosen
    return with_shared(chosen, granitemoeshared.shared_mlp(config))
