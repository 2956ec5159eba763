"""Describes architectures of models that are older than llama, or differ from it in their norms."""

from collections.abc import Mapping

import numpy as np

from ouzel.checkpoint.model_files import JsonObject
from ouzel.gguf.architectures.dense import read_epsilon
from ouzel.gguf.architectures.kind import (
    LAYER,
    QK_NORMS,
    Architecture,
    Change,
    permute_heads,
)
from ouzel.gguf.facts import Facts

MAX_HIDDEN_SIZE = 2**18  # several times as much as in any published model


def _read_inner_size(facts: Facts) -> int:
    """Reads the size from a tensor: the converter writes 4 times the hidden size for all files."""
    facts.integer("feed_forward_length", 0)
    return facts.tensor_shape("blk.0.ffn_up.weight")[0]


def _rotated_share(facts: Facts) -> JsonObject:
    """Returns the share of each head that is rotated, also if it is all of the head."""
    size = facts.integer("embedding_length") // max(facts.integer("attention.head_count"), 1)
    num_dims = facts.integer("rope.dimension_count", size)
    return {"partial_rotary_factor": num_dims / max(size, 1)}


def _gpt2(facts: Facts) -> JsonObject:
    epsilon = read_epsilon(facts)
    return {
        "intermediate_size": _read_inner_size(facts),
        "layer_norm_eps": epsilon,
        "rms_norm_eps": epsilon,
    }


def _gptneox(facts: Facts) -> JsonObject:
    epsilon = read_epsilon(facts)
    return _rotated_share(facts) | {
        "layer_norm_eps": epsilon,
        "rms_norm_eps": epsilon,
        "use_parallel_residual": facts.flag("use_parallel_residual", True),
        "attention_bias": facts.has_tensor("blk.0.attn_qkv.bias"),
    }


def split_by_head(facts: Facts) -> Mapping[str, Change]:
    """Returns the change of the fused projection: files have all queries, all keys, all values."""
    hidden, num_heads = facts.integer("embedding_length"), facts.integer("attention.head_count")
    if not 0 < hidden <= MAX_HIDDEN_SIZE or num_heads < 1 or hidden % num_heads:
        return {}  # config.json is refused by these numbers
    rows = np.arange(3 * hidden).reshape(3, num_heads, hidden // num_heads)
    return {"attn_qkv": Change(row_order=tuple(rows.swapaxes(0, 1).reshape(-1).tolist()))}


def _phi2(facts: Facts) -> JsonObject:
    epsilon = read_epsilon(facts)
    return _rotated_share(facts) | {
        "intermediate_size": _read_inner_size(facts),
        "layer_norm_eps": epsilon,
        "rms_norm_eps": epsilon,
        "qk_layernorm": False,
    }


def _olmo(facts: Facts) -> JsonObject:
    return {
        "rms_norm_eps": read_epsilon(facts),
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "clip_qkv": facts.number("attention.clamp_kqv", 0.0) or None,
    }


def _command_r(facts: Facts) -> JsonObject:
    epsilon = read_epsilon(facts)
    return {
        "layer_norm_eps": epsilon,
        "rms_norm_eps": epsilon,
        "logit_scale": facts.number("logit_scale"),
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "use_qk_norm": facts.has_tensor("blk.0.attn_q_norm.weight"),
    }


_GPT2_LAYER = {
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
_GPTNEOX_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_qkv": "attention.query_key_value",
    "attn_output": "attention.dense",
    "ffn_norm": "post_attention_layernorm",
    "ffn_up": "mlp.dense_h_to_4h",
    "ffn_down": "mlp.dense_4h_to_h",
}
_PHI2_LAYER = {
    "attn_output": "self_attn.dense",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}

CLASSIC = {
    "gpt2": Architecture(
        model_type="gpt2",
        config=_gpt2,
        layer=_GPT2_LAYER,
        outer={"position_embd": "model.embed_positions"},
    ),
    "gptneox": Architecture(
        model_type="gpt_neox",
        config=_gptneox,
        layer=_GPTNEOX_LAYER,
        outer={"output_norm": "model.final_layer_norm"},
        changes=split_by_head,
    ),
    "phi2": Architecture(
        model_type="phi",
        config=_phi2,
        layer=LAYER | _PHI2_LAYER,
        outer={"output_norm": "model.final_layernorm"},
    ),
    "olmo": Architecture(model_type="olmo", config=_olmo, changes=permute_heads),
    "command-r": Architecture(model_type="cohere", config=_command_r, layer=LAYER | QK_NORMS),
}
