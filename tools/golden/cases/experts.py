"""Mixtures of experts."""

from typing import Any

from tools.golden.cases import Case, rope

SMALL: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 32, "vocab_size": 128, "num_experts_per_tok": 2}

CASES: dict[str, Case] = {
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
}
