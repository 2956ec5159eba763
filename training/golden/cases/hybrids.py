"""Recurrent layers beside attention."""

from training.golden.cases import Case, rope

SMALL = {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 160}

DELTA_NET = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 8,
}

MAMBA = {"mamba_n_heads": 8, "mamba_d_state": 16, "mamba_n_groups": 2, "mamba_chunk_size": 32}

# The keys of BASE that mean nothing to models without attention.
WITHOUT_ATTENTION = dict.fromkeys(
    (
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "max_position_embeddings",
        "rms_norm_eps",
    )
)

# Transformers ignores these keys of Codestral Mamba.
MAMBA2_KEYS = {**WITHOUT_ATTENTION, "norm_before_gate": True, "rms_norm": True}

FALCON = {  # the factors of Falcon-H1-0.5B, made larger where they leave little to see
    "embedding_multiplier": 1.5,
    "lm_head_multiplier": 0.4,
    "attention_in_multiplier": 1.25,
    "attention_out_multiplier": 0.75,
    "key_multiplier": 0.6,
    "ssm_in_multiplier": 0.8,
    "ssm_out_multiplier": 1.2,
    "ssm_multipliers": [0.7, 1.1, 0.6, 0.8, 0.5],
    "mlp_multipliers": [0.9, 0.6],
}

EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}

CASES: dict[str, Case] = {
    "lfm2": Case(
        {
            **SMALL,
            "model_type": "lfm2",
            "num_hidden_layers": 3,
            "layer_types": ["conv", "full_attention", "conv"],
            "intermediate_size": 130,
            "block_multiple_of": 32,
            "rope_parameters": rope(theta=1000000.0),
            "tie_word_embeddings": True,
            "norm_eps": 1e-5,
        }
    ),
    "lfm3": Case(
        {
            **SMALL,
            "model_type": "lfm3",
            "num_hidden_layers": 4,
            "layer_types": ["conv", "sliding_attention", "full_attention", "conv"],
            "intermediate_size": 64,
            "head_dim": 16,
            "sliding_window": 8,
            "tie_word_embeddings": True,
            "rms_norm_eps": 1e-5,
        }
    ),
    "lfm3-plain": Case(
        {
            **SMALL,
            "model_type": "lfm3",
            "num_hidden_layers": 5,
            "intermediate_size": 64,
            "head_dim": 16,
            "conv_bias": True,
            "attention_bias": True,
            "use_sandwich_norm": False,
            "use_attention_gate": False,
            "sliding_window": 8,
            "norm_eps": 1e-5,
        }
    ),
    "lfm2-bias": Case(
        {
            **SMALL,
            "model_type": "lfm2",
            "num_hidden_layers": 3,
            "full_attn_idxs": [1],
            "intermediate_size": 64,
            "block_auto_adjust_ff_dim": False,
            "conv_bias": True,
            "conv_L_cache": 4,
            "rope_parameters": rope(theta=1000000.0),
            "norm_eps": 1e-4,
        },
        older_rope_keys=True,
    ),
    "qwen3_5": Case(
        {
            **SMALL,
            **DELTA_NET,
            "model_type": "qwen3_5_text",
            "num_hidden_layers": 3,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "intermediate_size": 64,
            "head_dim": 32,
            "rope_parameters": rope(
                theta=1000000.0, partial_rotary_factor=0.25, mrope_section=[2, 1, 1]
            ),
            "tie_word_embeddings": True,
        }
    ),
    "granitemoehybrid": Case(
        {
            **SMALL,
            **MAMBA,
            "model_type": "granitemoehybrid",
            "num_hidden_layers": 3,
            "layer_types": ["mamba", "attention", "mamba"],
            "num_local_experts": 0,
            "shared_intermediate_size": 64,
            "embedding_multiplier": 2.0,
            "residual_multiplier": 0.5,
            "attention_multiplier": 0.15,
            "logits_scaling": 3.0,
            "tie_word_embeddings": True,
        }
    ),
    "granitemoehybrid-rope": Case(
        {
            **SMALL,
            **MAMBA,
            "model_type": "granitemoehybrid",
            "num_hidden_layers": 2,
            "layer_types": ["mamba", "attention"],
            "num_local_experts": 0,
            "shared_intermediate_size": 64,
            "attention_bias": True,
            "attention_multiplier": 0.25,
            "mamba_d_head": 8,
            "mamba_n_groups": 1,
            "mamba_conv_bias": False,
            "mamba_proj_bias": True,
            "position_embedding_type": "rope",
            "rope_parameters": rope(),
        }
    ),
    "falcon-h1": Case(
        {
            **SMALL,
            **MAMBA,
            **FALCON,
            "model_type": "falcon_h1",
            "num_hidden_layers": 2,
            "intermediate_size": 64,
            "head_dim": 32,
            "mamba_d_ssm": 64,
            "mamba_d_head": 8,
            "mamba_n_groups": 1,
            "mamba_norm_before_gate": False,
            "rope_parameters": rope(theta=1e11),
        },
        older_rope_keys=True,
    ),
    "falcon-h1-norm": Case(
        {
            **SMALL,
            **MAMBA,
            "model_type": "falcon_h1",
            "num_hidden_layers": 2,
            "intermediate_size": 64,
            "mamba_d_ssm": None,
            "mamba_rms_norm": True,
            "mamba_norm_before_gate": True,
            "mamba_conv_bias": False,
            "mamba_proj_bias": True,
            "projectors_bias": True,
            "attention_bias": True,
            "mlp_bias": True,
            "ssm_in_multiplier": 0.8,
            "rope_parameters": rope(),
            "tie_word_embeddings": True,
        }
    ),
    "bamba": Case(
        {
            **SMALL,
            **MAMBA,
            "model_type": "bamba",
            "num_hidden_layers": 3,
            "attn_layer_indices": [1],
            "intermediate_size": 64,
            "rope_parameters": rope(partial_rotary_factor=0.5),
        },
        older_rope_keys=True,
        # Published config.json have no share of the positions, but the number of dimensions.
        published={"partial_rotary_factor": None, "attn_rotary_emb": 8},
    ),
    "mamba": Case(
        {
            "model_type": "mamba",
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "vocab_size": 160,
            "state_size": 8,
            "intermediate_size": 96,  # not `expand` times the hidden size
            "tie_word_embeddings": True,
        },
        published={**WITHOUT_ATTENTION, "intermediate_size": 96, "tie_word_embeddings": None},
    ),
    "falcon-mamba": Case(
        {
            "model_type": "falcon_mamba",
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "vocab_size": 160,
            "state_size": 8,
            "intermediate_size": 64,
            "time_step_rank": 4,
            "mixer_rms_eps": 1e-3,
            "use_bias": True,
            "use_conv_bias": False,
        },
        published=WITHOUT_ATTENTION,
    ),
    "mamba2": Case(
        {
            "model_type": "mamba2",
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "vocab_size": 160,
            "num_heads": 8,
            "head_dim": 8,
            "state_size": 16,
            "n_groups": 2,
            "chunk_size": 32,
        },
        published=MAMBA2_KEYS,
    ),
    "mamba2-bias": Case(
        {
            "model_type": "mamba2",
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "vocab_size": 160,
            "num_heads": 4,
            "head_dim": 16,
            "state_size": 16,
            "n_groups": 1,
            "use_bias": True,
            "use_conv_bias": False,
            "time_step_limit": [0.3, float("inf")],
            "chunk_size": 32,
            "tie_word_embeddings": True,
        },
        published=MAMBA2_KEYS,
    ),
    "nemotron_h": Case(
        {
            **SMALL,
            "model_type": "nemotron_h",
            "hybrid_override_pattern": "M-*M",
            "head_dim": 32,
            "mamba_num_heads": 4,
            "mamba_head_dim": 8,
            "ssm_state_size": 16,
            "n_groups": 2,
            "chunk_size": 32,
            "time_step_min": 0.2,
            "intermediate_size": 64,
            "mlp_bias": True,
        },
        first_seed=19,
    ),
    "nemotron-h-moe": Case(
        {
            **SMALL,
            "model_type": "nemotron_h",
            "hybrid_override_pattern": "ME*E",
            "head_dim": 32,
            "mamba_num_heads": 4,
            "mamba_head_dim": 8,
            "ssm_state_size": 16,
            "n_groups": 2,
            "chunk_size": 32,
            "time_step_min": 0.2,
            "n_routed_experts": 6,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "moe_shared_expert_intermediate_size": 64,
            "n_group": 3,
            "topk_group": 2,
            "routed_scaling_factor": 1.5,
        },
        factors={"experts.down_proj": 0.25},
    ),
    "qwen3_next": Case(
        {
            **SMALL,
            **DELTA_NET,
            **EXPERTS,
            "model_type": "qwen3_next",
            "num_hidden_layers": 2,
            "full_attention_interval": 2,
            "intermediate_size": 64,
            "mlp_only_layers": [1],
            "shared_expert_intermediate_size": 32,
            "head_dim": 16,
            "rope_parameters": rope(theta=1000000.0, partial_rotary_factor=0.5),
        },
        factors={"experts.down_proj": 0.2},
    ),
    "qwen3_5-moe": Case(
        {
            **SMALL,
            **DELTA_NET,
            **EXPERTS,
            "model_type": "qwen3_5_moe_text",
            "num_hidden_layers": 2,
            "layer_types": ["linear_attention", "full_attention"],
            "shared_expert_intermediate_size": 32,
            "head_dim": 32,
            "rope_parameters": rope(theta=1000000.0, partial_rotary_factor=0.25),
        },
        first_seed=100,
    ),
    "lfm2-moe": Case(
        {
            **SMALL,
            **EXPERTS,
            "model_type": "lfm2_moe",
            "num_hidden_layers": 3,
            "num_dense_layers": 1,
            "layer_types": ["conv", "full_attention", "conv"],
            "intermediate_size": 64,
            "routed_scaling_factor": 1.5,
            "rope_parameters": rope(theta=1000000.0),
            "tie_word_embeddings": True,
        },
        factors={"experts.down_proj": 0.25},
    ),
    "granitemoehybrid-experts": Case(
        {
            **SMALL,
            **MAMBA,
            "model_type": "granitemoehybrid",
            "num_hidden_layers": 2,
            "layer_types": ["mamba", "attention"],
            "intermediate_size": 32,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "shared_intermediate_size": 32,
            "attention_multiplier": 0.25,
        }
    ),
}
