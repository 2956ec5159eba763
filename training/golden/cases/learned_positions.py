"""Families with a table of learned positions: GPT-2 and its contemporaries."""

from typing import Any

from training.golden.cases import Case
from training.golden.cases.dense import OF_PLAIN_LAYERS

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "vocab_size": 160,
    "max_position_embeddings": 128,  # which the family writes as n_positions, as it does the others
    "hidden_size": 32,
    "num_attention_heads": 2,
}
# Keys that BASE gives, and config.json of the family lacks.
NOT_OF_GPT2 = dict.fromkeys(
    ("intermediate_size", "num_key_value_heads", "rms_norm_eps", "max_position_embeddings")
)
OPT: dict[str, Any] = {
    "model_type": "opt",
    "vocab_size": 160,
    "max_position_embeddings": 128,
    "hidden_size": 32,
    "ffn_dim": 64,
    "num_attention_heads": 2,
    "tie_word_embeddings": True,
}
NOT_OF_OPT = dict.fromkeys(("intermediate_size", "num_key_value_heads", "rms_norm_eps"))

# Conv1D has its columns in the last dimension, by which weights are drawn. With these factors the
# greedy tokens change from one to the next.
OF_CONV1D = {
    "mlp.c_proj.weight": 0.4,
    "mlp.c_fc.weight": 2.0,
    "c_attn.weight": 3.0,
    "ln_f.bias": 0.3,
    "bias": 0.5,
    "wpe": 2.0,
    "wte": 0.5,
}
OF_OPT = {
    **OF_PLAIN_LAYERS,
    "bias": 0.3,
    "embed_positions": 2.0,
    "fc1.weight": 2.0,
    "out_proj.weight": 2.0,
}

CASES: dict[str, Case] = {
    "gpt2": Case(
        {**GPT2, "tie_word_embeddings": True},
        published={**NOT_OF_GPT2, "n_ctx": 128},
        factors=OF_CONV1D,
    ),
    "gpt2-untied": Case(
        {**GPT2, "n_inner": 64, "activation_function": "relu", "scale_attn_weights": False},
        published=NOT_OF_GPT2,
        factors=OF_CONV1D,
    ),
    "opt": Case(
        OPT,
        published=NOT_OF_OPT,
        factors=OF_OPT,
    ),
    "opt-post-norm": Case(  # as OPT-350M
        {**OPT, "do_layer_norm_before": False, "word_embed_proj_dim": 16},
        published=NOT_OF_OPT,
        factors=OF_OPT,
    ),
    "opt-plain-norm": Case(
        {
            **OPT,
            "layer_norm_elementwise_affine": False,
            "enable_bias": False,
            "activation_function": "gelu",
            "tie_word_embeddings": False,
        },
        published=NOT_OF_OPT,
        factors=OF_OPT,
    ),
}
