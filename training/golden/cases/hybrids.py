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
