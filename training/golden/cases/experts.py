"""Mixtures of experts."""

from typing import Any

from training.golden.cases import Case, rope

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "vocab_size": 128,
    "num_experts_per_tok": 2,
}

GRANITE = {
    "embedding_multiplier": 6.0,
    "attention_multiplier": 0.2,
    "residual_multiplier": 0.4,
    "logits_scaling": 3.0,
}

# Where two experts are close, rounding chooses the other: random ones are made to count for less.
CALM = {".experts.down_proj": 0.15}

GLM: dict[str, Any] = {
    **SMALL,
    "model_type": "glm4_moe",
    "head_dim": 16,
    "rope_parameters": rope(theta=1000000.0, partial_rotary_factor=0.5),
    "moe_intermediate_size": 32,
    "n_routed_experts": 6,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "rms_norm_eps": 1e-5,
}

CASES: dict[str, Case] = {
    "phimoe": Case(  # within the original context, beyond which transformers 5 has other factors
        {
            **SMALL,
            "model_type": "phimoe",
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "num_local_experts": 4,
            "max_position_embeddings": 128,
            "sliding_window": 24,
            "attention_bias": True,
            "lm_head_bias": True,
            "router_jitter_noise": 0.5,
            "rope_parameters": rope(
                "longrope",
                short_factor=[1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 2.4, 3.0],
                long_factor=[1.2, 2.0, 4.0, 7.0, 12.0, 20.0, 30.0, 40.0],
                short_mscale=1.2,
                long_mscale=1.5,
                original_max_position_embeddings=128,
            ),
        },
        factors={"router.weight": 2.0},
        first_seed=224,
    ),
    "qwen3-moe": Case(
        {
            **SMALL,
            "model_type": "qwen3_moe",
            "rope_parameters": rope(theta=1000000.0),
            "head_dim": 16,
            "num_hidden_layers": 3,
            "moe_intermediate_size": 32,
            "num_experts": 5,
            "norm_topk_prob": True,
            "mlp_only_layers": [1],
        },
        older_rope_keys=True,
    ),
    "gpt-oss": Case(
        {
            **SMALL,
            "model_type": "gpt_oss",
            "rope_parameters": rope(
                "yarn", 150000.0, factor=32.0, original_max_position_embeddings=1024, truncate=False
            ),
            "head_dim": 64,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "sliding_window": 8,
            "num_local_experts": 4,
            "swiglu_limit": 1.5,
        },
        older_rope_keys=True,
    ),
    "mixtral": Case(
        {
            **SMALL,
            "model_type": "mixtral",
            "rope_parameters": rope(theta=1000000.0),
            "sliding_window": 12,
            "num_local_experts": 4,
        },
        first_seed=253,
    ),
    "olmoe": Case(
        {
            **SMALL,
            "model_type": "olmoe",
            "rope_parameters": rope(),
            "num_experts": 5,
            "clip_qkv": 1.5,
        },
        older_rope_keys=True,
        first_seed=146,
    ),
    "qwen2-moe": Case(
        {
            **SMALL,
            "model_type": "qwen2_moe",
            "rope_parameters": rope(theta=1000000.0),
            "num_hidden_layers": 3,
            "num_experts": 5,
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 64,
            "decoder_sparse_step": 2,
            "use_sliding_window": True,
            "sliding_window": 12,
            "max_window_layers": 2,
        }
    ),
    "granitemoe": Case(
        {
            **SMALL,
            **GRANITE,
            "model_type": "granitemoe",
            "rope_parameters": rope(),
            "attention_bias": True,
            "num_local_experts": 5,
            "num_hidden_layers": 2,
        },
        older_rope_keys=True,
    ),
    "granitemoeshared": Case(
        {
            **SMALL,
            **GRANITE,
            "model_type": "granitemoeshared",
            "rope_parameters": rope(),
            "num_local_experts": 4,
            "shared_intermediate_size": 64,
        }
    ),
    "ernie4-5-moe": Case(
        {
            **SMALL,
            "model_type": "ernie4_5_moe",
            "rope_parameters": rope(theta=500000.0),
            "num_hidden_layers": 3,
            "moe_intermediate_size": 32,
            "moe_num_experts": 5,
            "moe_k": 2,
            "moe_num_shared_experts": 2,
            "moe_layer_start_index": 1,
            "moe_layer_end_index": 1,
            "tie_word_embeddings": True,
        },
        first_seed=42,
    ),
    # as GLM-4.5-Air
    "glm4-moe": Case(
        {**GLM, "attention_bias": True, "use_qk_norm": False},
        older_rope_keys=True,
        factors=CALM,
    ),
    # as GLM-4.6, with groups of experts
    "glm4-moe-norms": Case(
        {
            **GLM,
            "attention_bias": True,
            "use_qk_norm": True,
            "n_group": 3,
            "topk_group": 2,
            "n_shared_experts": 2,
            "routed_scaling_factor": 2.5,
        },
        factors=CALM,
    ),
    "minimax-m2": Case(
        {
            **SMALL,
            "model_type": "minimax_m2",
            "head_dim": 16,
            "rope_parameters": rope(theta=5000000.0, partial_rotary_factor=0.5),
            "num_local_experts": 6,
        },
        older_rope_keys=True,
        published={
            "partial_rotary_factor": None,
            "rotary_dim": 8,
            "attn_type_list": [1, 1],
            "qk_norm_type": "per_layer",
            "scoring_func": "sigmoid",
            "shared_intermediate_size": 0,
            "use_qk_norm": True,
            "use_routing_bias": True,
        },
        factors=CALM,
    ),
    "dots1": Case(
        {
            **SMALL,
            "model_type": "dots1",
            "head_dim": 16,
            "rope_parameters": rope(theta=10000000.0),
            "moe_intermediate_size": 32,
            "n_routed_experts": 6,
            "n_shared_experts": 2,
            "first_k_dense_replace": 1,
            "norm_topk_prob": True,
            "routed_scaling_factor": 2.5,
            "sliding_window": None,
            "rms_norm_eps": 1e-5,
        },
        older_rope_keys=True,
        published={"scoring_func": "noaux_tc", "use_sliding_window": False},
        factors=CALM,
    ),
    "hunyuan-v1-moe": Case(
        {
            **SMALL,
            "model_type": "hunyuan_v1_moe",
            "rope_parameters": rope("dynamic", alpha=1000.0, factor=1.0),
            "head_dim": 16,
            "num_experts": 5,
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": True,
        },
        older_rope_keys=True,
        published={
            "moe_topk": [2, 2],
            "moe_intermediate_size": [32, 32],
            "num_shared_expert": [1, 1],
            "use_mixed_mlp_moe": True,
            "use_qk_norm": True,
            "norm_topk_prob": True,
            "use_cla": False,
        },
    ),
}
