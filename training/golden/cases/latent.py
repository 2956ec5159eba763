"""Families with latent attention: MiniCPM3, DeepSeek-V2 and V3, GLM-4.7-Flash."""

from training.golden.cases import Case, rope

SMALL = {"hidden_size": 32, "intermediate_size": 64, "vocab_size": 128, "num_key_value_heads": 4}
HEADS = {"kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 24}
EXPERTS = {
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 32,
}
# Where two experts are close, rounding chooses the other: random ones are made to count for less.
CALM = {".experts.down_proj": 0.15}
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=32, mscale=0.9, mscale_all_dim=0.6)

CASES: dict[str, Case] = {
    "minicpm3": Case(
        {
            **SMALL,
            "model_type": "minicpm3",
            "rope_parameters": rope(),
            **HEADS,
            "q_lora_rank": 32,
            "attention_bias": True,
            "mlp_bias": True,
            "scale_emb": 3,
            "scale_depth": 1.0,
            "dim_model_base": 24,
            "tie_word_embeddings": False,
            "rms_norm_eps": 1e-5,
        }
    ),
    "deepseek-v2": Case(
        {
            **SMALL,
            **HEADS,
            **EXPERTS,
            "model_type": "deepseek_v2",
            "rope_parameters": YARN,
            "max_position_embeddings": 128,
            "q_lora_rank": None,
            "first_k_dense_replace": 1,
            "topk_method": "group_limited_greedy",
            "n_group": 3,
            "topk_group": 2,
            "routed_scaling_factor": 1.7,
            "n_shared_experts": 2,
            "mlp_bias": True,
        },
        older_rope_keys=True,
        factors=CALM,
    ),
    "deepseek-v3": Case(
        {
            **SMALL,
            **HEADS,
            **EXPERTS,
            "model_type": "deepseek_v3",
            "rope_parameters": rope(),
            "q_lora_rank": 32,
            "first_k_dense_replace": 1,
            "n_group": 3,
            "topk_group": 2,
            "attention_bias": True,
        },
        older_rope_keys=True,
        factors=CALM,
    ),
    "glm4-moe-lite": Case(
        {
            **SMALL,
            **HEADS,
            **EXPERTS,
            "model_type": "glm4_moe_lite",
            "rope_parameters": rope(theta=1000000.0),
            "q_lora_rank": 32,
            "n_group": 1,
            "topk_group": 1,
            "mlp_layer_types": ["sparse", "dense"],
            "rope_interleave": False,
            "norm_topk_prob": False,
        },
        factors=CALM,
    ),
}
