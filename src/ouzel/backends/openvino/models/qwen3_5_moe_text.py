"""Qwen3.5 and 3.6 MoE are qwen3_5 with experts in place of the feed-forward layers.

One expert computes all tokens. Reference: transformers, models/qwen3_5_moe/modeling_qwen3_5_moe.py
and configuration_qwen3_5_moe.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import build_decoder
from ouzel.backends.openvino.graph.delta_net import DeltaNetShape
from ouzel.backends.openvino.graph.prediction import make_predictor
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import qwen2_moe, qwen3_5_text
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = qwen3_5_text.with_defaults(config).with_defaults(**DEFAULTS)
    shape = qwen3_5_text.decoder_shape(config, turns_by_three=b.takes_images)
    mixer = qwen3_5_text.make_mixer(config, b, shape, DeltaNetShape.read(config))
    routing = replace(Routing.read(config), is_normalised=True)
    feed_forward = qwen2_moe.feed_forward(config, routing)
    return build_decoder(b, shape, feed_forward, mixer, make_predictor(config, shape, feed_forward))
