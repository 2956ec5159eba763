"""DeepSeek-V2 and V2-Lite have latent attention, and experts chosen by a softmax.

The experts come from all groups, or from the best groups only. Reference: transformers,
models/deepseek_v2/modeling_deepseek_v2.py and configuration_deepseek_v2.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.deepseek import build_deepseek, first_layers
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

DEFAULTS = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 0,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "moe_intermediate_size": 1407,
    "routed_scaling_factor": 1.0,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    return build_deepseek(
        config, b, softmax_routing(config), is_paired=True, dense_layers=first_layers(config)
    )


def softmax_routing(config: HfConfig) -> Routing:
    config.choice("scoring_func", "softmax")
    # With true, transformers does not normalise, but DeepSeek's own code does.
    if config.flag("norm_topk_prob", False):
        raise ModelLoadError("config.json: norm_topk_prob must be false, found true")
    is_grouped = config.choice("topk_method", "greedy", "group_limited_greedy") != "greedy"
    return Routing(
        num_experts=config.size("n_routed_experts"),
        num_chosen=config.size("num_experts_per_tok"),
        num_groups=config.size("n_group") if is_grouped else 1,
        num_chosen_groups=config.size("topk_group") if is_grouped else 1,
        factor=config.number("routed_scaling_factor"),
    )
