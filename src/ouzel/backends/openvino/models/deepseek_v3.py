"""DeepSeek-V3 and R1, and Moonlight, have latent attention, and experts of the best groups.

Corrected scores choose the experts. Reference: transformers,
models/deepseek_v3/modeling_deepseek_v3.py and configuration_deepseek_v3.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.deepseek import build_deepseek, first_layers, sigmoid_routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 3,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "n_group": 8,
    "topk_group": 4,
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    is_paired = config.flag("rope_interleave", True)
    return build_deepseek(
        config, b, sigmoid_routing(config), is_paired=is_paired, dense_layers=first_layers(config)
    )
