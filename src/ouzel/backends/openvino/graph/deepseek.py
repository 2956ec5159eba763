"""Builds DeepSeek's decoder, which other families use too, with latent attention and experts.

All layers but the first ones have experts, some of which compute every token. Reference:
transformers, models/deepseek_v2 and deepseek_v3.
"""

from dataclasses import replace
from functools import partial

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    Part,
    build_decoder,
    choose_by_layer,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.experts import ExpertsShape, make_experts, with_shared
from ouzel.backends.openvino.graph.latent_attention import (
    LatentShape,
    make_latent_attention,
    read_decoder_shape,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.prediction import make_deepseek_names, make_predictor
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError


def build_deepseek(
    config: HfConfig, b: Builder, routing: Routing, *, is_paired: bool, dense_layers: frozenset[int]
) -> LanguageModel:
    """Builds the decoder; the layer that predicts further tokens always has experts."""
    shape = read_decoder_shape(config)
    attention = partial(make_latent_attention, shape=LatentShape.read(config, is_paired=is_paired))
    half = feed_forward(config, routing, dense_layers)
    predict = make_predictor(
        config, shape, half, names=make_deepseek_names(shape.num_layers), attention=attention
    )
    return build_decoder(b, shape, half, attention(b, shape), predict)


def first_layers(config: HfConfig) -> frozenset[int]:
    return frozenset(
        range(min(config.integer("first_k_dense_replace"), config.size("num_hidden_layers")))
    )


def sigmoid_routing(config: HfConfig) -> Routing:
    """Returns sigmoid routing: each expert has a score, and a correction that only affects the
    choice.
    """
    config.choice("scoring_func", "sigmoid")
    config.choice("topk_method", "noaux_tc")
    return Routing(
        num_experts=config.size("n_routed_experts"),
        num_chosen=config.size("num_experts_per_tok"),
        scores="sigmoid",
        num_groups=config.size("n_group"),
        num_chosen_groups=config.size("topk_group"),
        num_group_scores=2,
        is_normalised=config.flag("norm_topk_prob"),
        added_to_sum=1e-20,
        factor=config.number("routed_scaling_factor"),
    )


def feed_forward(config: HfConfig, routing: Routing, dense_layers: frozenset[int]) -> Part:
    if (interval := config.integer("moe_layer_freq", 1)) != 1:
        raise ModelLoadError(f"config.json: moe_layer_freq must be 1, found {interval}")
    mlp = replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False))
    experts = ExpertsShape.read(config, routing.num_experts, "moe_intermediate_size")
    shared = replace(mlp, inner_size=config.size("n_shared_experts") * experts.inner_size)
    correction = "gate.e_score_correction_bias" if routing.scores == "sigmoid" else ""
    sparse = with_shared(
        make_experts(routing, experts, correction=correction),
        make_feed_forward(shared, "mlp.shared_experts"),
    )
    return choose_by_layer(make_feed_forward(mlp), sparse, dense_layers)
