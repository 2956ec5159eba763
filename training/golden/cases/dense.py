"""Families that differ from llama in their projections, norms, activations, or in what they rotate."""

from typing import Any

from training.golden.cases import Case, rope

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 160,
    "max_position_embeddings": 4096,
}
LONGROPE = rope(
    "longrope",
    short_factor=[1.0, 1.1, 1.3, 1.6, 2.0, 2.5],
    long_factor=[1.2, 2.0, 4.0, 7.0, 12.0, 20.0],
    partial_rotary_factor=0.75,
)
# Feed-forward layers without gates add much of the same to every row. With these factors the greedy
# tokens change from one to the next.
OF_PLAIN_LAYERS = {
    "dense_4h_to_h.weight": 0.4,
    "fc2.weight": 0.4,
    "query_key_value.weight": 2.0,
    "lm_head.bias": 0.3,
    "q_proj.weight": 2.0,
    "k_proj.weight": 2.0,
    "v_proj.weight": 2.0,
    "bias": 0.4,
}

CASES: dict[str, Case] = {
    "phi3": Case(
        {
            **SMALL,
            "model_type": "phi3",
            "rope_parameters": LONGROPE,
            "original_max_position_embeddings": 32,
            "sliding_window": 24,
        },
        older_rope_keys=True,
    ),
    "ernie4_5": Case(
        {
            **SMALL,
            "model_type": "ernie4_5",
            "rope_parameters": rope(theta=500000.0),
            "head_dim": 32,
            "use_bias": True,
        },
    ),
    "glm": Case({**SMALL, "model_type": "glm", "rope_parameters": rope(), "head_dim": 32}),
    "glm-usual-heads": Case(  # llama.cpp's converter knows no other size of heads
        {**SMALL, "model_type": "glm", "rope_parameters": rope(), "head_dim": 16}
    ),
    "glm4": Case(
        {
            **SMALL,
            "model_type": "glm4",
            "rope_parameters": rope(),
            "head_dim": 32,
            "attention_bias": True,
        },
        older_rope_keys=True,
    ),
    "hunyuan_v1_dense": Case(
        {
            **SMALL,
            "model_type": "hunyuan_v1_dense",
            "rope_parameters": rope("dynamic", alpha=1000.0, factor=1.0),
            "head_dim": 32,
        },
        older_rope_keys=True,
    ),
    "seed_oss": Case(
        {**SMALL, "model_type": "seed_oss", "rope_parameters": rope(), "head_dim": 32}
    ),
    "starcoder2": Case(
        {
            **SMALL,
            "model_type": "starcoder2",
            "rope_parameters": rope(theta=100000.0),
            "sliding_window": 20,
        }
    ),
    "stablelm": Case(
        {**SMALL, "model_type": "stablelm", "rope_parameters": rope(), "use_qkv_bias": True},
        older_rope_keys=True,
    ),
    "stablelm-parallel": Case(
        {
            **SMALL,
            "model_type": "stablelm",
            "rope_parameters": rope(partial_rotary_factor=0.5),
            "qk_layernorm": True,
            "use_parallel_residual": True,
        }
    ),
    "apertus": Case(
        {
            **SMALL,
            "model_type": "apertus",
            "head_dim": 32,
            "rope_parameters": rope(
                "llama3",
                12000000.0,
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=64,
            ),
        }
    ),
    "nemotron": Case(
        {**SMALL, "model_type": "nemotron", "rope_parameters": rope(), "head_dim": 32},
        older_rope_keys=True,
    ),
    "helium": Case(
        {**SMALL, "model_type": "helium", "rope_parameters": rope(theta=100000.0), "head_dim": 16}
    ),
    "arcee": Case({**SMALL, "model_type": "arcee", "rope_parameters": rope(), "head_dim": 32}),
    "qwen3_vl": Case(
        {
            "model_type": "qwen3_vl",
            "image_token_id": 100_000,
            "video_token_id": 100_001,
            "vision_start_token_id": 100_002,
            "vision_end_token_id": 100_003,
            "tie_word_embeddings": True,
            "text_config": {
                **SMALL,
                "model_type": "qwen3_vl_text",
                "head_dim": 32,
                "rope_parameters": rope(
                    theta=5000000.0, mrope_interleaved=True, mrope_section=[6, 5, 5]
                ),
            },
            "vision_config": {
                "depth": 1,
                "hidden_size": 32,
                "intermediate_size": 32,
                "num_heads": 1,
                "patch_size": 2,
                "temporal_patch_size": 1,
                "spatial_merge_size": 1,
                "out_hidden_size": 32,
                "num_position_embeddings": 16,
                "deepstack_visual_indexes": [0],
            },
        }
    ),
    "internlm3": Case(
        {
            **SMALL,
            "model_type": "internlm3",
            "rope_parameters": rope("dynamic", 50000000.0, factor=6.0),
            "head_dim": 32,
            "attention_bias": True,
            "mlp_bias": True,
        }
    ),
    "gpt-neox": Case(
        {
            **SMALL,
            "model_type": "gpt_neox",
            "num_key_value_heads": None,
            "rope_parameters": rope(partial_rotary_factor=0.25),
        },
        published={
            "rope_parameters": None,
            "rotary_pct": 0.25,
            "rotary_emb_base": 10000,
            "rms_norm_eps": None,
        },
        factors=OF_PLAIN_LAYERS,
    ),
    "gpt-neox-sequential": Case(
        {
            **SMALL,
            "model_type": "gpt_neox",
            "num_key_value_heads": None,
            "rope_parameters": rope(theta=25000.0, partial_rotary_factor=1.0),
            "hidden_act": "gelu_fast",
            "use_parallel_residual": False,
            "attention_bias": False,
        },
        factors=OF_PLAIN_LAYERS,
    ),
    "phi": Case(
        {
            **SMALL,
            "model_type": "phi",
            "num_key_value_heads": None,
            "rope_parameters": rope(partial_rotary_factor=0.5),
        },
        older_rope_keys=True,
        published={"rms_norm_eps": None},
        factors=OF_PLAIN_LAYERS,
    ),
    "phi-norms": Case(
        {
            **SMALL,
            "model_type": "phi",
            "rope_parameters": rope(partial_rotary_factor=0.25),
            "qk_layernorm": True,
        },
        factors={"bias": 0.1, "fc1.weight": 3.0, "v_proj.weight": 3.0, "layernorm.weight": 2.0},
    ),
    "olmo": Case(
        {
            **SMALL,
            "model_type": "olmo",
            "rope_parameters": rope(),
            "clip_qkv": 1.0,
        },
        older_rope_keys=True,
        published={"rms_norm_eps": None},
    ),
    "cohere": Case(
        {
            **SMALL,
            "model_type": "cohere",
            "rope_parameters": rope(theta=8000000.0),
            "logit_scale": 0.2,
            "tie_word_embeddings": True,
        },
        older_rope_keys=True,
        published={"rms_norm_eps": None},
    ),
    "cohere-norms": Case(  # as Command R+
        {
            **SMALL,
            "model_type": "cohere",
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rope_parameters": rope(theta=75000.0),
            "use_qk_norm": True,
            "attention_bias": True,
            "tie_word_embeddings": True,
        },
        published={"rms_norm_eps": None},
    ),
    "jais2": Case(
        {**SMALL, "model_type": "jais2", "rope_parameters": rope(theta=500000.0), "head_dim": 32}
    ),
}
