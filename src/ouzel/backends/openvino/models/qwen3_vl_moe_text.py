"""The language model of Qwen3-VL's mixtures is qwen3_vl_text with experts in its layers.

One tensor has all experts. Published checkpoints store it as [experts, columns, rows], and
transformers 5 saves [experts, rows, columns]. One of a layer's two tensors is never square, and
its shape decides for both; transformers 5 decides by each, and misreads square ones.

Reference: transformers, models/qwen3_vl_moe/modeling_qwen3_vl_moe.py and
configuration_qwen3_vl_moe.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import build_decoder
from ouzel.backends.openvino.graph.experts import ExpertTensors
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import qwen3_moe, qwen3_vl_text
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_key_value_heads": 16,
    "rope_theta": 500_000.0,
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1408,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = qwen3_vl_text.decoder_shape(config, turns_by_three=b.takes_images)
    routing = replace(Routing.read(config), is_normalised=True)
    tensors = ExpertTensors(may_be_transposed=True)
    return build_decoder(b, shape, qwen3_moe.feed_forward(config, routing, tensors))
