"""GLM-4.7-Flash is deepseek_v3 with other sizes; config.json may list the layers with experts.

Reference: transformers, models/glm4_moe_lite/modeling_glm4_moe_lite.py and
configuration_glm4_moe_lite.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.deepseek import build_deepseek, first_layers, sigmoid_routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

DEFAULTS = {
    "rms_norm_eps": 1e-5,
    "q_lora_rank": 768,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "first_k_dense_replace": 1,
    "n_routed_experts": 64,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1536,
    "n_group": 1,
    "topk_group": 1,
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.8,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    is_paired = config.flag("rope_interleave", True)
    return build_deepseek(
        config, b, sigmoid_routing(config), is_paired=is_paired, dense_layers=dense_layers(config)
    )


def dense_layers(config: HfConfig) -> frozenset[int]:
    if not config.has("mlp_layer_types"):
        return first_layers(config)
    kinds = config.texts("mlp_layer_types", config.size("num_hidden_layers"))
    if unknown := set(kinds) - {"dense", "sparse"}:
        raise ModelLoadError(
            f"config.json: mlp_layer_types must be dense and sparse, found {', '.join(unknown)}"
        )
    return frozenset(layer for layer, kind in enumerate(kinds) if kind == "dense")
