"""The language model of Qwen3-Omni's thinker is qwen3_moe, and rotates by three positions, equal in
a text and in a sound.

The talker and the vocoder, which speak, are left out.

Reference: transformers, models/qwen3_omni_moe/modeling_qwen3_omni_moe.py and
configuration_qwen3_omni_moe.py; Qwen3-Omni (Xu 2025, arXiv 2509.17765).
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import build_decoder
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import qwen3_moe, qwen3_vl_text
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_key_value_heads": 4,
    "rope_theta": 1_000_000.0,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    config.require(sliding_window=None)
    shape = qwen3_vl_text.decoder_shape(config, turns_by_three=b.takes_images)
    return build_decoder(b, shape, qwen3_moe.feed_forward(config, Routing.read(config)))
