"""Describes hybrids: attention beside short convolutions, gated delta nets, or Mamba-2."""

from collections.abc import Mapping
from dataclasses import replace

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.kind import (
    LAYER,
    QK_NORMS,
    QWEN_PREDICTION,
    Architecture,
    Change,
    Experts,
    Split,
    permute_heads,
    read_experts,
)
from ouzel.gguf.architectures.mamba import (
    MAMBA_CHANGES,
    has_part,
    name_bare_mamba,
    name_mamba_layer,
)
from ouzel.gguf.architectures.sparse import (
    GRANITE_JOINS,
    GRANITE_LAYER,
    SHARED_EXPERT,
    read_granitemoe,
)
from ouzel.gguf.facts import Facts

_MAX_INNER_SIZE = 2**18  # several times as many as in any published model
_SIGMOID = 2  # GGUF's number for a sigmoid as gating function


def _lfm2(facts: Facts) -> JsonObject:
    """Reads the kinds of layers: a layer without key heads is a convolution."""
    num_kv_heads = facts.integers("attention.head_count_kv", facts.num_blocks)
    return {
        "num_key_value_heads": max(num_kv_heads, default=0),
        "layer_types": ["full_attention" if count else "conv" for count in num_kv_heads],
        "norm_eps": facts.number("attention.layer_norm_rms_epsilon"),
        "conv_L_cache": facts.integer("shortconv.l_cache"),
        "conv_bias": facts.has_tensor("blk.0.shortconv.conv.bias"),
        "block_auto_adjust_ff_dim": False,
        "tie_embedding": not facts.has_tensor("output.weight"),
    }


def _lfm2moe(facts: Facts) -> JsonObject:
    if (kind := facts.integer("expert_gating_func", _SIGMOID)) != _SIGMOID:
        raise ModelLoadError(
            f"{facts.source}: lfm2moe.expert_gating_func must be {_SIGMOID}, a sigmoid, "
            f"found {kind}"
        )
    num_dense = facts.integer("leading_dense_block_count")
    return (
        _lfm2(facts)
        | read_experts(facts)
        | {
            "num_dense_layers": num_dense,
            "use_expert_bias": facts.has_tensor(f"blk.{num_dense}.exp_probs_b.bias"),
            "norm_topk_prob": facts.flag("expert_weights_norm", True),
            "routed_scaling_factor": facts.number("expert_weights_scale", 1.0),
        }
    )


def _qwen35(facts: Facts) -> JsonObject:
    num_layers = facts.num_layers
    num_key_heads, num_value_heads, key_dim, value_dim = _delta_heads(facts)
    interval = facts.integer("full_attention_interval", 4)
    has_states = [(layer + 1) % interval != 0 for layer in range(num_layers)]
    if facts.has("attention.recurrent_layers"):
        has_states = facts.flags("attention.recurrent_layers", facts.num_blocks)[:num_layers]
    return {
        "layer_types": [
            "linear_attention" if has_state else "full_attention" for has_state in has_states
        ],
        "linear_conv_kernel_dim": facts.integer("ssm.conv_kernel"),
        "linear_key_head_dim": key_dim,
        "linear_value_head_dim": value_dim,
        "linear_num_key_heads": num_key_heads,
        "linear_num_value_heads": num_value_heads,
    }


def _qwen35moe(facts: Facts) -> JsonObject:
    # the size of layers without experts; this architecture has no such layers
    facts.integer("feed_forward_length", 0)
    shared = {"shared_expert_intermediate_size": facts.integer("expert_shared_feed_forward_length")}
    return _qwen35(facts) | read_experts(facts) | shared | {"intermediate_size": 1}


def _delta_heads(facts: Facts) -> tuple[int, int, int, int]:
    num_key_heads = facts.integer("ssm.group_count")
    num_value_heads = facts.integer("ssm.time_step_rank")
    if num_key_heads < 1 or num_value_heads < 1 or num_value_heads % num_key_heads:
        raise ModelLoadError(
            f"{facts.source}: ssm.time_step_rank, the number of value heads, must be a multiple "
            f"of ssm.group_count {num_key_heads}, the number of key heads, found {num_value_heads}"
        )
    inner_size, key_dim = facts.integer("ssm.inner_size"), facts.integer("ssm.state_size")
    is_valid = num_value_heads <= inner_size <= _MAX_INNER_SIZE
    if not is_valid or not 0 < num_key_heads * key_dim <= _MAX_INNER_SIZE:
        raise ModelLoadError(
            f"{facts.source}: ssm.inner_size and ssm.state_size must give heads of "
            f"<= {_MAX_INNER_SIZE} dimensions in total, found {inner_size} and {key_dim}"
        )
    return num_key_heads, num_value_heads, key_dim, inner_size // num_value_heads


def _delta_changes(facts: Facts) -> Mapping[str, Change]:
    """Returns the changes that reorder the value heads.

    The file has the first value head of each key head, then the second of each, and so on.
    transformers has all value heads of the first key head, then all of the second, and so on.
    """
    num_key_heads, num_value_heads, key_dim, value_dim = _delta_heads(facts)
    ratio = num_value_heads // num_key_heads
    heads = tuple(
        number * num_key_heads + key for key in range(num_key_heads) for number in range(ratio)
    )
    values = tuple(head * value_dim + row for head in heads for row in range(value_dim))
    num_others = 2 * num_key_heads * key_dim
    mixed = Change(row_order=(*range(num_others), *(num_others + row for row in values)))
    small = Change(row_order=heads)
    return {
        "attn_qkv": mixed,
        "ssm_conv1d": mixed,
        "attn_gate": Change(row_order=values),
        "ssm_alpha": small,
        "ssm_beta": small,
        "ssm_dt": small,
        "ssm_a": replace(small, is_rate=True),
        "ssm_out": Change(column_blocks=heads),
    }


def _qwen3next_splits(facts: Facts) -> Mapping[str, Split]:
    num_key_heads, num_value_heads, *_ = _delta_heads(facts)
    ratio = num_value_heads // num_key_heads
    return {"ssm_ba": Split("linear_attn.in_proj_b", "linear_attn.in_proj_a", ratio)}


def _granitehybrid(facts: Facts) -> JsonObject:
    """Reads the kinds of layers: a layer without key heads is Mamba-2.

    There are no rotary positions unless the file says so.
    """
    num_kv_heads = facts.integers("attention.head_count_kv", facts.num_blocks)
    turns = facts.flag("rope.scaling.finetuned", False)
    num_heads, inner_size = facts.integer("ssm.time_step_rank"), facts.integer("ssm.inner_size")
    hidden_size = max(facts.integer("embedding_length"), 1)
    return read_granitemoe(facts) | {
        "num_key_value_heads": max(num_kv_heads, default=0),
        "layer_types": ["attention" if count else "mamba" for count in num_kv_heads],
        "position_embedding_type": "rope" if turns else "nope",
        "num_local_experts": facts.integer("expert_count", 0),
        "mamba_d_conv": facts.integer("ssm.conv_kernel"),
        "mamba_d_state": facts.integer("ssm.state_size"),
        "mamba_n_groups": facts.integer("ssm.group_count"),
        "mamba_n_heads": num_heads,
        "mamba_expand": inner_size // hidden_size,
        "mamba_d_head": inner_size // max(num_heads, 1),
        "mamba_conv_bias": has_part(facts, "ssm_conv1d.bias"),
        "mamba_proj_bias": has_part(facts, "ssm_in.bias"),
    }


def _granitehybrid_changes(facts: Facts) -> Mapping[str, Change]:
    return {**permute_heads(facts), **MAMBA_CHANGES}


_LFM2_LAYER = {
    "attn_norm": "operator_norm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.out_proj",
    "attn_q_norm": "self_attn.q_layernorm",
    "attn_k_norm": "self_attn.k_layernorm",
    "shortconv.conv": "conv.conv",
    "shortconv.in_proj": "conv.in_proj",
    "shortconv.out_proj": "conv.out_proj",
    "ffn_norm": "ffn_norm",
    "ffn_gate": "feed_forward.w1",
    "ffn_up": "feed_forward.w3",
    "ffn_down": "feed_forward.w2",
}
_QWEN35_LAYER = (
    LAYER
    | QK_NORMS
    | {
        "post_attention_norm": "post_attention_layernorm",
        "attn_qkv": "linear_attn.in_proj_qkv",
        "attn_gate": "linear_attn.in_proj_z",
        "ssm_alpha": "linear_attn.in_proj_a",
        "ssm_beta": "linear_attn.in_proj_b",
        "ssm_conv1d": "linear_attn.conv1d",
        "ssm_norm": "linear_attn.norm",
        "ssm_out": "linear_attn.out_proj",
    }
)
_QWEN35_BARE = {"ssm_a": "linear_attn.A_log", "ssm_dt": "linear_attn.dt_bias"}
_LFM2_OUTER = {"token_embd_norm": "model.embedding_norm"}

_QWEN35 = Architecture(
    model_type="qwen3_5_text",
    config=_qwen35,
    layer=_QWEN35_LAYER,
    bare=_QWEN35_BARE,
    changes=_delta_changes,
    unshifted_norms=frozenset({"ssm_norm"}),
    prediction=QWEN_PREDICTION,
)
_QWEN35_MOE = replace(
    _QWEN35,
    model_type="qwen3_5_moe_text",
    config=_qwen35moe,
    layer=_QWEN35_LAYER | SHARED_EXPERT,
    experts=Experts(),
)

HYBRIDS = {
    "lfm2": Architecture(model_type="lfm2", config=_lfm2, layer=_LFM2_LAYER, outer=_LFM2_OUTER),
    "lfm2moe": Architecture(
        model_type="lfm2_moe",
        config=_lfm2moe,
        layer=_LFM2_LAYER | {"ffn_gate_inp": "feed_forward.gate"},
        outer=_LFM2_OUTER,
        experts=Experts(prefix="feed_forward.experts.", gate="w1", up="w3", down="w2"),
        bare={"exp_probs_b": "feed_forward.expert_bias"},
    ),
    "qwen35": _QWEN35,
    "qwen35moe": _QWEN35_MOE,
    # Qwen3-Next is Qwen3.5 MoE with split projections and experts in all layers; its value heads
    # are not reordered.
    "qwen3next": replace(
        _QWEN35_MOE, splits=_qwen3next_splits, changes=lambda facts: {"ssm_a": Change(is_rate=True)}
    ),
    "granitehybrid": Architecture(
        model_type="granitemoehybrid",
        config=_granitehybrid,
        layer=GRANITE_LAYER | name_mamba_layer("mamba.") | {"ffn_down": "shared_mlp.output_linear"},
        bare=name_bare_mamba("mamba.")
        | {"ffn_down_exps.weight": "block_sparse_moe.output_linear.weight"},
        joins=GRANITE_JOINS,
        changes=_granitehybrid_changes,
    ),
}
