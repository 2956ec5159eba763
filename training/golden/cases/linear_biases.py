"""Families whose scores fall with the distance, in place of positions (ALiBi)."""

from typing import Any

from training.golden.cases import Case
from training.golden.cases.dense import OF_PLAIN_LAYERS

# Keys that BASE gives, and config.json of these families lacks.
ABSENT = dict.fromkeys(
    ("intermediate_size", "num_key_value_heads", "rms_norm_eps", "max_position_embeddings")
)
BLOOM: dict[str, Any] = {
    "model_type": "bloom",
    "vocab_size": 160,
    "hidden_size": 64,
    "n_head": 2,
    "n_layer": 2,
    "num_attention_heads": 2,
    "tie_word_embeddings": True,
}
MPT: dict[str, Any] = {
    "model_type": "mpt",
    "vocab_size": 160,
    "d_model": 48,
    "n_heads": 3,
    "n_layers": 2,
    "hidden_size": 48,
    "num_attention_heads": 3,
    "max_seq_len": 128,
    "tie_word_embeddings": True,
}

CASES: dict[str, Case] = {
    "bloom": Case(BLOOM, published=ABSENT, factors=OF_PLAIN_LAYERS),
    "mpt": Case(
        {**MPT, "attn_config": {"clip_qkv": 1.5}}, published=ABSENT, factors=OF_PLAIN_LAYERS
    ),
    "mpt-scale": Case(
        {**MPT, "attn_config": {"softmax_scale": 0.4}, "tie_word_embeddings": False},
        published=ABSENT,
        factors=OF_PLAIN_LAYERS,
    ),
}
