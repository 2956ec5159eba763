"""Gemma 3n and 4: embeddings for each layer with shared keys and values, keys that are values, and experts."""

from typing import Any

from training.golden.cases import Case, rope

FULL, SLIDING = "full_attention", "sliding_attention"
SMALL: dict[str, Any] = {
    "model_type": "gemma4_text",
    "hidden_size": 32,
    "intermediate_size": 64,
    "vocab_size": 128,
    "sliding_window": 12,
    "head_dim": 16,
    "global_head_dim": 32,
    "final_logit_softcapping": 2.0,
    "hidden_size_per_layer_input": 0,
    "num_key_value_heads": 2,
}
# Products of queries and keys are not scaled: trained norms keep them small.
CALM = {"q_norm": 0.5, "k_norm": 0.5}

CASES: dict[str, Case] = {
    "gemma3n": Case(
        {
            "model_type": "gemma3n_text",
            "hidden_size": 32,
            "intermediate_size": [48, 48, 64, 48],
            "num_hidden_layers": 4,
            "layer_types": [SLIDING, FULL, SLIDING, FULL],
            "num_kv_shared_layers": 2,
            "num_key_value_heads": 1,
            "head_dim": 32,
            "vocab_size": 128,
            "vocab_size_per_layer_input": 120,
            "hidden_size_per_layer_input": 8,
            "sliding_window": 12,
            "laurel_rank": 8,
            "activation_sparsity_pattern": [0.8, 0.0, 0.5, 0.0],
            "final_logit_softcapping": 10.0,
            "tie_word_embeddings": True,
            "rope_parameters": {FULL: rope(theta=1e6), SLIDING: rope()},
        },
        factors={**CALM, "embed_tokens.": 0.3},
        published={"rope_parameters": None, "rope_theta": 1e6, "rope_local_base_freq": 1e4},
    ),
    "gemma4-shared": Case(
        {
            **SMALL,
            "num_hidden_layers": 4,
            "layer_types": [SLIDING, FULL, SLIDING, FULL],
            "num_kv_shared_layers": 2,
            "num_key_value_heads": 1,
            "use_double_wide_mlp": True,
            "final_logit_softcapping": 10.0,
            "hidden_size_per_layer_input": 16,
            "vocab_size_per_layer_input": 128,
            "intermediate_size": 32,
        },
        factors=CALM,
    ),
    "gemma4-unified": Case(
        {
            **{key: value for key, value in SMALL.items() if key != "hidden_size_per_layer_input"},
            "model_type": "gemma4_unified_text",
            "num_hidden_layers": 3,
            "layer_types": [SLIDING, FULL, FULL],
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 1,
            "attention_bias": True,
            "tie_word_embeddings": True,
        },
        factors={**CALM, "embed_tokens": 0.3},  # else a token's embedding predicts the token again
    ),
    "gemma4-experts": Case(
        {
            **SMALL,
            "num_hidden_layers": 2,
            "layer_types": [SLIDING, FULL],
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 1,
            "enable_moe_block": True,
            "num_experts": 5,
            "top_k_experts": 2,
            "moe_intermediate_size": 32,
            "final_logit_softcapping": 10.0,
        },
        # Where two experts are close, rounding chooses the other: random ones are made to count for less.
        factors={**CALM, "post_feedforward_layernorm_2": 0.1},
    ),
}
