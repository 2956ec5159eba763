"""Hunyuan-A13B is hunyuan_v1_dense with experts, and a feed-forward layer beside them, in every
layer.

Reference: transformers, models/hunyuan_v1_moe/modeling_hunyuan_v1_moe.py and
configuration_hunyuan_v1_moe.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import Part, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.experts import ExpertsShape, make_experts, with_shared
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import hunyuan_v1_dense
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {"rms_norm_eps": 1e-5, "num_experts": 1, "moe_topk": 1, "max_position_embeddings": 2048}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    for key in ("num_experts", "moe_topk", "moe_intermediate_size", "num_shared_expert"):
        config = with_one_value(config, key)
    config.require(
        use_mixed_mlp_moe=True,
        norm_topk_prob=True,
        use_qk_norm=True,
        num_shared_expert=1,
        moe_intermediate_size=config.size("intermediate_size"),
        moe_layer_num_skipped=0,
        mlp_bias=False,
        use_cla=False,  # layers that share keys and values
        use_mla=False,
        position_embedding_xdrope=False,
        group_limited_greedy=False,
        routed_scaling_factor=False,
    )
    model = build_decoder(b, hunyuan_v1_dense.decoder_shape(config), feed_forward(config))
    return replace(model, has_relative_positions=False)


def with_one_value(config: HfConfig, key: str) -> HfConfig:
    """Replaces a list that has the same integer for every layer by that integer."""
    if not isinstance(config.values.get(key), list):
        return config
    values = config.integers(key)
    if len(set(values)) != 1:
        raise config.refuse(key, "the same value for all layers")
    return config.with_values(**{key: values[0]})


def feed_forward(config: HfConfig) -> Part:
    routing = Routing(
        num_experts=config.size("num_experts"),
        num_chosen=config.size("moe_topk"),
        is_normalised=True,
    )
    experts = ExpertsShape.read(config, routing.num_experts)
    shared = make_feed_forward(MlpShape.read(config), "mlp.shared_mlp")
    return with_shared(make_experts(routing, experts, router="gate.wg"), shared)
