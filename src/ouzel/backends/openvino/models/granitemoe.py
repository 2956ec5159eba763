"""Granite MoE is granite with experts in place of the feed-forward layers.

Reference: transformers, models/granitemoe/modeling_granitemoe.py and configuration_granitemoe.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import Part, build_decoder
from ouzel.backends.openvino.graph.experts import ExpertsShape, ExpertTensors, make_experts
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import granite
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {"num_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 2048}
TENSORS = ExpertTensors(
    all_gate_up="input_linear.weight", all_down="output_linear.weight", are_separate=False
)


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    return build_decoder(b, granite.decoder_shape(config), feed_forward(config))


def feed_forward(config: HfConfig) -> Part:
    routing = replace(Routing.read(config), scores="softmax_of_chosen")
    experts = replace(ExpertsShape.read(config, routing.num_experts), tensors=TENSORS)
    return make_experts(routing, experts, place="block_sparse_moe", router="router.layer")
