"""LFM2 MoE is lfm2 with experts in place of the feed-forward layers, except in the first layers.

Reference: transformers, models/lfm2_moe/modeling_lfm2_moe.py and configuration_lfm2_moe.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import GatedUnit
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    Part,
    build_decoder,
    choose_by_layer,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.experts import (
    MIXTRAL_TENSORS,
    ExpertsShape,
    make_experts,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import lfm2
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = lfm2.DEFAULTS | {
    "hidden_size": 2048,
    "num_experts": 32,
    "num_experts_per_tok": 4,
    "intermediate_size": 7168,
    "moe_intermediate_size": 1792,
    "norm_topk_prob": True,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = lfm2.decoder_shape(config)
    return build_decoder(b, shape, feed_forward(config), lfm2.make_mixer(config, b, shape))


def feed_forward(config: HfConfig) -> Part:
    """Returns the feed-forward half; a bias of each expert affects the choice, and not the
    weights.
    """
    routing = replace(
        Routing.read(config),
        scores="sigmoid",
        added_to_sum=1e-6,
        factor=config.number("routed_scaling_factor", 1.0),
    )
    experts = ExpertsShape(
        num_experts=routing.num_experts,
        hidden_size=config.size("hidden_size"),
        inner_size=config.size("moe_intermediate_size"),
        unit=GatedUnit(activation="silu"),
        tensors=MIXTRAL_TENSORS,
    )
    correction = "expert_bias" if config.flag("use_expert_bias", True) else ""
    sparse = make_experts(routing, experts, place="feed_forward", correction=correction)
    mlp = MlpShape(
        hidden_size=experts.hidden_size,
        inner_size=config.size("intermediate_size"),
        names=("w1", "w3", "w2"),
    )
    sparse_layers = frozenset(
        range(config.integer("num_dense_layers", 2), config.size("num_hidden_layers"))
    )
    return choose_by_layer(sparse, make_feed_forward(mlp, "feed_forward"), sparse_layers)
