"""Families with factors, norms behind the halves of a layer, or windows in some layers: Gemma 3 and the like."""

from typing import Any

from training.golden.cases import Case, rope

SMALL: dict[str, Any] = {
    "vocab_size": 128,
    "hidden_size": 32,  # whose root, Gemma's factor, is none in bf16
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}
SLIDING, FULL = "sliding_attention", "full_attention"

SWASH: dict[str, Any] = {
    **SMALL,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "rope_parameters": rope(),
    "embedding_multiplier": 1.5,
    "attention_multiplier": 0.2,
    "residual_multiplier": 0.9,
    "logits_scaling": 3.0,
    "sliding_window": 8,
    "rms_norm_eps": 1e-5,
}

CASES: dict[str, Case] = {
    "gemma": Case(
        {
            **SMALL,
            "model_type": "gemma",
            "num_hidden_layers": 2,
            "head_dim": 32,
            "hidden_act": "gelu",  # as the first checkpoints say
            "tie_word_embeddings": True,
            "rope_parameters": rope(),
        },
        older_rope_keys=True,
        published={"hidden_act": "gelu"},
    ),
    "gemma3": Case(
        {
            **SMALL,
            "model_type": "gemma3_text",
            "head_dim": 32,
            "attention_bias": True,
            "query_pre_attn_scalar": 200,
            "final_logit_softcapping": 20.0,
            "sliding_window": 8,
            "layer_types": [SLIDING, FULL, SLIDING],
            "rope_parameters": {FULL: rope("linear", 1e6, factor=8.0), SLIDING: rope()},
        }
    ),
    "gemma2": Case(
        {
            **SMALL,
            "model_type": "gemma2",
            "head_dim": 32,
            "num_key_value_heads": 2,
            "query_pre_attn_scalar": 16,
            "final_logit_softcapping": 20.0,
            "attn_logit_softcapping": 1.5,
            "tie_word_embeddings": True,
            "sliding_window": 8,
            "rope_parameters": rope(),
        },
        older_rope_keys=True,
        factors={"embed_tokens": 0.3},  # else a token's embedding predicts the token again
        published={
            "hidden_act": "gelu_pytorch_tanh",
            "cache_implementation": "hybrid",
            "sliding_window_size": 8,
            "layer_types": None,
        },
    ),
    "granite": Case(
        {
            **SMALL,
            "model_type": "granite",
            "rope_parameters": rope(),
            "attention_bias": True,
            "mlp_bias": True,
            "num_hidden_layers": 2,
            "embedding_multiplier": 3.0,
            "attention_multiplier": 0.1,
            "residual_multiplier": 0.4,
            "logits_scaling": 6.0,
        }
    ),
    "minicpm": Case(
        {
            **SMALL,
            "model_type": "granite",
            "rope_parameters": rope(),
            "embedding_multiplier": 12.0,
            "attention_multiplier": 16**-0.5,
            "residual_multiplier": 1.4 / 3**0.5,
            "logits_scaling": 2.0,
            "tie_word_embeddings": False,
        },
        older_rope_keys=True,
        published={
            "model_type": "minicpm",
            "architectures": ["MiniCPMForCausalLM"],
            "scale_emb": 12,
            "scale_depth": 1.4,
            "dim_model_base": 16,
            **dict.fromkeys(
                (
                    "embedding_multiplier",
                    "attention_multiplier",
                    "residual_multiplier",
                    "logits_scaling",
                ),
                None,
            ),
        },
    ),
    "olmo2": Case(
        {**SMALL, "model_type": "olmo2", "rope_parameters": rope(), "attention_bias": True},
        factors={"embed_tokens": 6.0},
    ),
    "olmo3": Case(
        {
            **SMALL,
            "model_type": "olmo3",
            "sliding_window": 8,
            "layer_types": [SLIDING, FULL, SLIDING],
            "rope_parameters": {
                FULL: rope(
                    "yarn",
                    5e5,
                    factor=4.0,
                    original_max_position_embeddings=32,
                    attention_factor=1.2,
                ),
                SLIDING: rope(theta=5e5),
            },
        },
        factors={"embed_tokens": 6.0},
    ),
    "exaone4": Case(
        {
            **SMALL,
            "model_type": "exaone4",
            "rope_parameters": rope(theta=1e6),
            "sliding_window": 8,
            "layer_types": [SLIDING, FULL, SLIDING],
        },
        factors={"embed_tokens": 6.0},
    ),
    "cohere2": Case(
        {
            **SMALL,
            "model_type": "cohere2",
            "rope_parameters": rope(theta=5e4),
            "attention_bias": True,
            "sliding_window": 8,
            "layer_types": [SLIDING, FULL, SLIDING],
            "logit_scale": 0.25,
            "layer_norm_eps": 1e-5,
        }
    ),
    "ministral3": Case(
        {
            **SMALL,
            "model_type": "ministral3",
            "num_hidden_layers": 2,
            "head_dim": 32,
            "sliding_window": 24,
            "rope_parameters": rope(
                "yarn",
                1e6,
                factor=8.0,
                original_max_position_embeddings=16,
                beta_fast=4.0,
                beta_slow=1.0,
                mscale=1.0,
                mscale_all_dim=1.0,
                llama_4_scaling_beta=0.5,
            ),
        }
    ),
    "granite-swa": Case(
        {
            **SWASH,
            "model_type": "granite_swa",
            "layer_rope_theta": [0, 10000.0, 10000.0, 500000.0],
            "tie_word_embeddings": True,
        }
    ),
    "granitemoe-swa": Case(
        {
            **SWASH,
            "model_type": "granitemoe_swa",
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_hidden_layers": 2,
            "layer_types": [SLIDING, FULL],
            "layer_rope_theta": [10000.0, 0],
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "shared_intermediate_size": 64,
        }
    ),
    # also a layer without window that has positions, and one with a window that has none
    "muse-glimmer": Case(
        {
            "model_type": "muse_glimmer",
            "image_token_id": 100_000,
            "video_token_id": 100_001,
            "out_hidden_size": 32,
            "projector_hidden_size": 16,
            "text_config": {
                **SMALL,
                "model_type": "muse_glimmer_text",
                "head_dim": 16,
                "num_hidden_layers": 4,
                "rope_parameters": rope(theta=500000.0),
                "layer_types": [SLIDING, SLIDING, FULL, FULL],
                "layer_rope_theta": [500000.0, 0, 500000.0, 0],
                "sliding_window": 8,
                "final_logit_softcapping": 20.0,
                "output_multiplier": 0.7,
                "rms_norm_eps": 1e-5,
            },
            "vision_config": {
                "patch_size": 2,
                "pos_emb_height": 4,
                "pos_emb_width": 4,
                "num_attention_heads": 1,
                "num_hidden_layers": 1,
                "hidden_size": 8,
                "intermediate_size": 8,
            },
        }
    ),
}
