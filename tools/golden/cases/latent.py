"""Families with latent attention: MiniCPM3."""

from tools.golden.cases import Case, rope

SMALL = {"hidden_size": 32, "intermediate_size": 64, "vocab_size": 128, "num_key_value_heads": 4}

CASES: dict[str, Case] = {
    "minicpm3": Case(
        {
            **SMALL,
            "model_type": "minicpm3",
            "rope_parameters": rope(),
            "q_lora_rank": 32,
            "kv_lora_rank": 32,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 24,
            "attention_bias": True,
            "mlp_bias": True,
            "scale_emb": 3,
            "scale_depth": 1.0,
            "dim_model_base": 24,
            "tie_word_embeddings": False,
            "rms_norm_eps": 1e-5,
        }
    ),
}
