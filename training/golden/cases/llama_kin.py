"""Llama, Mistral, Qwen2, Qwen3, SmolLM3, and variants of rotary positions."""

from typing import Any

import torch

from training.golden.cases import Case, rope

LLAMA3 = rope(
    "llama3",
    500000.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
YARN = rope("yarn", 1000000.0, factor=4.0, original_max_position_embeddings=32)

CASES: dict[str, Case] = {
    "llama": Case({"model_type": "llama", "rope_parameters": rope()}, torch.float32),
    "llama3": Case(
        {
            "model_type": "llama",
            "rope_parameters": LLAMA3,
            "tie_word_embeddings": True,
            "num_hidden_layers": 3,
        },
        older_rope_keys=True,
    ),
    "llama-bias": Case(
        {
            "model_type": "llama",
            "rope_parameters": rope("linear", factor=2.0),
            "attention_bias": True,
            "mlp_bias": True,
            "num_key_value_heads": 4,
        },
        torch.float16,
    ),
    "mistral": Case(
        {"model_type": "mistral", "rope_parameters": rope(), "sliding_window": 16, "head_dim": 32}
    ),
    "qwen2": Case(
        {
            "model_type": "qwen2",
            "rope_parameters": rope(theta=1000000.0),
            "tie_word_embeddings": True,
        },
        older_rope_keys=True,
    ),
    "qwen2-window": Case(
        {
            "model_type": "qwen2",
            "rope_parameters": rope(theta=1000000.0),
            "use_sliding_window": True,
            "sliding_window": 12,
            "max_window_layers": 1,
        }
    ),
    "qwen3": Case(
        {
            "model_type": "qwen3",
            "rope_parameters": rope(theta=1000000.0),
            "head_dim": 32,
            "tie_word_embeddings": True,
            "num_hidden_layers": 3,
        },
        largest_shard="200KB",
        older_rope_keys=True,
    ),
    "qwen3-yarn": Case(
        {
            "model_type": "qwen3",
            "rope_parameters": YARN,
            "head_dim": 16,
            "max_position_embeddings": 128,
        }
    ),
    "smollm3": Case(
        {
            "model_type": "smollm3",
            "rope_parameters": rope(theta=5000000.0),
            "no_rope_layer_interval": 2,
            "num_hidden_layers": 3,
            "tie_word_embeddings": True,
        },
        older_rope_keys=True,
    ),
}

ROPE_CASES: list[dict[str, Any]] = [
    {"head_dim": 128, "max_position_embeddings": 40960, "rope_parameters": rope(theta=1000000.0)},
    {
        "head_dim": 64,
        "max_position_embeddings": 8192,
        "rope_parameters": rope("linear", factor=4.0),
    },
    {
        "head_dim": 64,
        "max_position_embeddings": 8192,
        "rope_parameters": rope("dynamic", factor=2.0),
    },
    {
        "head_dim": 64,
        "max_position_embeddings": 131072,
        "rope_parameters": {**LLAMA3, "factor": 32.0, "original_max_position_embeddings": 8192},
    },
    {
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "rope_parameters": rope(
            "yarn", 1000000.0, factor=4.0, original_max_position_embeddings=32768
        ),
    },
    {
        "head_dim": 64,
        "max_position_embeddings": 16384,
        "rope_parameters": rope(
            "yarn",
            10000.0,
            factor=8.0,
            original_max_position_embeddings=2048,
            beta_fast=16.0,
            beta_slow=2.0,
            mscale=0.7,
            mscale_all_dim=1.1,
            truncate=False,
        ),
    },
    {
        "head_dim": 64,
        "max_position_embeddings": 16384,
        "rope_parameters": rope(
            "yarn", 10000.0, factor=8.0, original_max_position_embeddings=2048, attention_factor=1.3
        ),
    },
    {
        "head_dim": 16,
        "max_position_embeddings": 131072,
        "rope_parameters": rope(
            "longrope",
            short_factor=[1.0, 1.0, 1.1, 1.2, 1.5, 1.9, 2.4, 3.0],
            long_factor=[1.1, 1.3, 2.2, 5.5, 9.1, 20.0, 40.0, 64.5],
            original_max_position_embeddings=4096,
        ),
    },
    {
        "head_dim": 16,
        "max_position_embeddings": 8192,
        "rope_parameters": rope(
            "longrope",
            short_factor=[1.0, 1.5, 2.0, 2.5, 3.0, 3.5],
            long_factor=[2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
            original_max_position_embeddings=4096,
            partial_rotary_factor=0.75,
            factor=16.0,
            attention_factor=1.4,
        ),
    },
    {
        "head_dim": 16,
        "max_position_embeddings": 8192,
        "rope_parameters": rope("linear", factor=2.0, partial_rotary_factor=0.5),
    },
    {
        "head_dim": 32,
        "max_position_embeddings": 16384,
        "rope_parameters": rope(
            "yarn",
            10000.0,
            factor=8.0,
            original_max_position_embeddings=2048,
            partial_rotary_factor=0.25,
        ),
    },
]
