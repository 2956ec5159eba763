"""Qwen3-Next is qwen3_5_moe with fused projections in its delta nets; some layers may be dense.

Reference: transformers, models/qwen3_next/modeling_qwen3_next.py and configuration_qwen3_next.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import build_decoder, choose_by_layer, make_feed_forward
from ouzel.backends.openvino.graph.delta_net import DeltaNetShape
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.prediction import make_predictor
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import qwen2_moe, qwen3_5_text
from ouzel.backends.openvino.models.qwen3_moe import layers_with_experts
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "intermediate_size": 5632,
    "norm_topk_prob": True,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = qwen3_5_text.with_defaults(config).with_defaults(**DEFAULTS)
    shape = qwen3_5_text.decoder_shape(config)
    delta_shape = replace(DeltaNetShape.read(config), is_fused=True)
    sparse = qwen2_moe.feed_forward(config, Routing.read(config))
    dense = make_feed_forward(MlpShape.read(config))
    feed_forward = choose_by_layer(sparse, dense, layers_with_experts(config))
    mixer = qwen3_5_text.make_mixer(config, b, shape, delta_shape)
    return build_decoder(b, shape, feed_forward, mixer, make_predictor(config, shape, sparse))
