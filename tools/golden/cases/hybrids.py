"""Recurrent layers beside attention."""

from tools.golden.cases import Case, rope

SMALL = {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 160}

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
}
