"""Describes architectures whose scores fall with the distance, in place of positions (ALiBi)."""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.gguf.architectures.classic import split_by_head
from ouzel.gguf.architectures.dense import read_epsilon
from ouzel.gguf.architectures.kind import Architecture
from ouzel.gguf.facts import Facts


def _bloom(facts: Facts) -> JsonObject:
    epsilon = read_epsilon(facts)
    return {"layer_norm_eps": epsilon, "rms_norm_eps": epsilon}


def _mpt(facts: Facts) -> JsonObject:
    attention = {
        "clip_qkv": facts.number("attention.clamp_kqv", 0.0) or None,
        "alibi_bias_max": facts.number("attention.max_alibi_bias", 8.0),
    }
    return _bloom(facts) | {"attn_config": attention}


_BLOOM_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_qkv": "self_attention.query_key_value",
    "attn_output": "self_attention.dense",
    "ffn_norm": "post_attention_layernorm",
    "ffn_up": "mlp.dense_h_to_4h",
    "ffn_down": "mlp.dense_4h_to_h",
}
_MPT_LAYER = {
    "attn_norm": "norm_1",
    "attn_qkv": "attn.Wqkv",
    "attn_output": "attn.out_proj",
    "ffn_norm": "norm_2",
    "ffn_up": "ffn.up_proj",
    "ffn_down": "ffn.down_proj",
}

LINEAR_BIASES = {
    "bloom": Architecture(
        model_type="bloom",
        config=_bloom,
        layer=_BLOOM_LAYER,
        outer={"token_embd_norm": "model.word_embeddings_layernorm"},
        changes=split_by_head,
    ),
    "mpt": Architecture(
        model_type="mpt", config=_mpt, layer=_MPT_LAYER, outer={"output_norm": "model.norm_f"}
    ),
}
