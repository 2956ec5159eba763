"""Describes architectures with experts, with latent attention, or with both."""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.dense import read_granite
from ouzel.gguf.architectures.experts import (
    SHARED_EXPERTS,
    SIGMOID,
    SOFTMAX,
    read_routed_experts,
)
from ouzel.gguf.architectures.kind import (
    LAYER,
    QK_NORMS,
    Architecture,
    Experts,
    Join,
    permute_heads,
    read_biases,
    read_experts,
)
from ouzel.gguf.facts import Facts

_PHIMOE_SCALE = 1.243163121016122
SHARED_EXPERT = {
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
}
GRANITE_LAYER = LAYER | {
    "ffn_gate_inp": "block_sparse_moe.router.layer",
    "ffn_down_shexp": "shared_mlp.output_linear",
}
GRANITE_JOINS = {
    "ffn_gate": Join("ffn_up", "shared_mlp.input_linear"),
    "ffn_gate_shexp": Join("ffn_up_shexp", "shared_mlp.input_linear"),
    "ffn_gate_exps": Join("ffn_up_exps", "block_sparse_moe.input_linear"),
}


def _phimoe(facts: Facts) -> JsonObject:
    """Reads the model. The scale of its rotary positions is not in the file: all published models
    have this one, in short and in long contexts.
    """
    long, short = (facts.floats(f"rope_factors_{kind}.weight") for kind in ("long", "short"))
    # llama.cpp computes this factor from the context lengths; the models were trained with
    # _PHIMOE_SCALE
    facts.number("rope.scaling.attn_factor", 1.0)
    return {
        "num_local_experts": facts.integer("expert_count"),
        "num_experts_per_tok": facts.integer("expert_used_count"),
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "lm_head_bias": facts.has_tensor("output.bias"),
        "sliding_window": facts.integer("attention.sliding_window", 0) or None,
        "rope_scaling": {
            "rope_type": "longrope",
            "long_factor": long,
            "short_factor": short,
            "long_mscale": _PHIMOE_SCALE,
            "short_mscale": _PHIMOE_SCALE,
            "original_max_position_embeddings": facts.integer(
                "rope.scaling.original_context_length"
            ),
        },
    }


def _qwen2moe(facts: Facts) -> JsonObject:
    shared = {"shared_expert_intermediate_size": facts.integer("expert_shared_feed_forward_length")}
    sparse: JsonObject = {
        "norm_topk_prob": facts.flag("expert_weights_norm", False),
        "decoder_sparse_step": 1,
    }
    bias = {"qkv_bias": facts.has_tensor("blk.0.attn_q.bias"), "use_sliding_window": False}
    return read_experts(facts) | shared | sparse | bias


def _qwen3moe(facts: Facts) -> JsonObject:
    facts.integer("attention.sliding_window", 0)  # models that do not use it have it, too
    bias = {
        "attention_bias": facts.has_tensor("blk.0.attn_output.bias"),
        "use_sliding_window": False,
    }
    return read_experts(facts) | bias | {"norm_topk_prob": True, "decoder_sparse_step": 1}


def _qwen3vlmoe(facts: Facts) -> JsonObject:
    facts.integer("n_deepstack_layers", 0)  # is in the mmproj file, too
    return _qwen3moe(facts)


def _olmoe(facts: Facts) -> JsonObject:
    limit = facts.number("attention.clamp_kqv", 0.0)
    return {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "num_experts": facts.integer("expert_count"),
        "num_experts_per_tok": facts.integer("expert_used_count"),
        "norm_topk_prob": False,
        "clip_qkv": limit or None,
    }


def _gpt_oss(facts: Facts) -> JsonObject:
    facts.integer("feed_forward_length", 0)  # repeats the size of experts
    experts = read_experts(facts)
    inner = experts.pop("moe_intermediate_size")
    return experts | {
        "num_local_experts": experts["num_experts"],
        "intermediate_size": inner,
        "sliding_window": facts.integer("attention.sliding_window"),
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
    }


def read_granitemoe(facts: Facts) -> JsonObject:
    return read_granite(facts) | {
        "num_local_experts": facts.integer("expert_count"),
        "num_experts_per_tok": facts.integer("expert_used_count", 0),
        "shared_intermediate_size": facts.integer("expert_shared_feed_forward_length", 0),
    }


def _ernie4_5_moe(facts: Facts) -> JsonObject:
    """Returns the keys; a first layer and an interval give the layers with experts (llama.cpp)."""
    inner = facts.integer("expert_feed_forward_length")
    shared = facts.integer("expert_shared_count", 0)
    # less than the size in the shared experts' tensors, so it is not used
    facts.integer("expert_shared_feed_forward_length", 0)
    return {
        "moe_num_experts": facts.integer("expert_count"),
        "moe_k": facts.integer("expert_used_count"),
        "moe_intermediate_size": inner,
        "moe_num_shared_experts": shared,
        "moe_layer_start_index": facts.integer("leading_dense_block_count"),
        "moe_layer_interval": facts.integer("interleave_moe_layer_step", 1),
        "use_bias": facts.has_tensor("blk.0.attn_q.bias"),
    }


def _deepseek2(facts: Facts) -> JsonObject:
    """Returns the keys of DeepSeek, or of GLM-4.7-Flash, which has the same name in GGUF.

    Experts have corrections if a sigmoid chooses them, and none if a softmax does.
    """
    first = facts.integer("leading_dense_block_count", 0)
    has_corrections = facts.has_tensor(f"blk.{first}.exp_probs_b.bias")
    kind = facts.integer("expert_gating_func", SIGMOID if has_corrections else SOFTMAX)
    if kind != (SIGMOID if has_corrections else SOFTMAX):
        raise ModelLoadError(
            f"{facts.source}: deepseek2.expert_gating_func {kind} contradicts its tensors"
        )
    num_heads, rotary = facts.integer("attention.head_count"), facts.integer("rope.dimension_count")
    if not facts.has("attention.key_length_mla"):
        raise ModelLoadError(
            f"{facts.source}: deepseek2 without attention.key_length_mla is not supported"
        )
    for key in ("attention.key_length", "attention.value_length", "attention.head_count_kv"):
        facts.integer(key, 0)  # lengths of the latent rows, which are not needed
    num_groups = facts.integer("expert_group_count", 1)
    topk_method = "group_limited_greedy" if num_groups > 1 else "greedy"
    return (
        read_routed_experts(facts)
        | {
            "model_type": "deepseek_v3" if has_corrections else "deepseek_v2",
            "num_key_value_heads": num_heads,
            "head_dim": rotary,
            "partial_rotary_factor": 1.0,
            "q_lora_rank": facts.integer("attention.q_lora_rank", 0) or None,
            "kv_lora_rank": facts.integer("attention.kv_lora_rank"),
            "qk_rope_head_dim": rotary,
            "qk_nope_head_dim": facts.integer("attention.key_length_mla") - rotary,
            "v_head_dim": facts.integer("attention.value_length_mla"),
            "topk_method": "noaux_tc" if has_corrections else topk_method,
            "attention_bias": facts.has_tensor("blk.0.attn_kv_a_mqa.bias"),
            "mlp_bias": facts.has_tensor("blk.0.ffn_up.bias"),
            "rope_interleave": True,
        }
        | _latent_yarn(facts)
    )


def _latent_yarn(facts: Facts) -> JsonObject:
    """Returns the YaRN scaling; both scales of transformers are `yarn_log_multiplier` / 0.1."""
    if facts.text("rope.scaling.type", "none") != "yarn":
        return {}
    weight = facts.number("rope.scaling.yarn_log_multiplier", 0.0) / 0.1
    scaling: JsonObject = {
        "rope_type": "yarn",
        "factor": facts.number("rope.scaling.factor"),
        "original_max_position_embeddings": facts.integer("rope.scaling.original_context_length"),
        "mscale": weight,
        "mscale_all_dim": weight,
    }
    if not weight:
        del scaling["mscale"], scaling["mscale_all_dim"]
    for key in ("beta_fast", "beta_slow"):
        if facts.has(f"rope.scaling.yarn_{key}"):
            scaling[key] = facts.number(f"rope.scaling.yarn_{key}")
    return {"rope_scaling": scaling}


def _minicpm3(facts: Facts) -> JsonObject:
    """Returns the keys for latent attention without experts.

    As in llama.cpp, the factors of the only published model are constants.
    """
    num_heads, rotary = facts.integer("attention.head_count"), facts.integer("rope.dimension_count")
    plain = facts.integer("attention.key_length") - rotary
    return read_biases(facts) | {
        "attention_bias": facts.has_tensor("blk.0.attn_kv_a_mqa.bias"),
        "head_dim": rotary,
        "partial_rotary_factor": 1.0,
        "q_lora_rank": facts.integer("attention.q_lora_rank"),
        "kv_lora_rank": facts.integer("attention.kv_lora_rank"),
        "qk_rope_head_dim": rotary,
        "qk_nope_head_dim": plain,
        "v_head_dim": facts.tensor_shape("blk.0.attn_kv_b.weight")[0] // max(num_heads, 1) - plain,
        "scale_emb": 12,
        "scale_depth": 1.4,
        "dim_model_base": 256,
    }


_LATENT = {
    "attn_q_a": "self_attn.q_a_proj",
    "attn_q_a_norm": "self_attn.q_a_layernorm",
    "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
    "attn_kv_a_norm": "self_attn.kv_a_layernorm",
    "attn_kv_b": "self_attn.kv_b_proj",
}

SPARSE = {
    "phimoe": Architecture(
        model_type="phimoe",
        config=_phimoe,
        layer=LAYER | {"ffn_gate_inp": "block_sparse_moe.gate"},
        experts=Experts(prefix="block_sparse_moe.experts.", gate="w1", up="w3", down="w2"),
    ),
    "qwen2moe": Architecture(
        model_type="qwen2_moe", config=_qwen2moe, layer=LAYER | SHARED_EXPERT, experts=Experts()
    ),
    "qwen3moe": Architecture(
        model_type="qwen3_moe",
        config=_qwen3moe,
        layer=LAYER | QK_NORMS | {"ffn_gate_inp": "mlp.gate"},
        experts=Experts(),
    ),
    "qwen3vlmoe": Architecture(
        model_type="qwen3_vl_moe_text",
        config=_qwen3vlmoe,
        layer=LAYER | QK_NORMS | {"ffn_gate_inp": "mlp.gate"},
        experts=Experts(),
    ),
    "olmoe": Architecture(
        model_type="olmoe",
        config=_olmoe,
        layer=LAYER | QK_NORMS | {"ffn_gate_inp": "mlp.gate"},
        experts=Experts(),
    ),
    "gpt-oss": Architecture(
        model_type="gpt_oss",
        config=_gpt_oss,
        layer=LAYER
        | {"post_attention_norm": "post_attention_layernorm", "ffn_gate_inp": "mlp.router"},
        experts=Experts(are_alternating=True),
        bare={"attn_sinks": "self_attn.sinks"},
        yarn={"truncate": False},
    ),
    "granitemoe": Architecture(
        model_type="granitemoeshared",
        config=read_granitemoe,
        layer=GRANITE_LAYER,
        bare={"ffn_down_exps.weight": "block_sparse_moe.output_linear.weight"},
        joins=GRANITE_JOINS,
        changes=permute_heads,
    ),
    "ernie4_5-moe": Architecture(
        model_type="ernie4_5_moe",
        config=_ernie4_5_moe,
        layer=LAYER | SHARED_EXPERTS,
        experts=Experts(),
        bare={"exp_probs_b": "mlp.moe_statics.e_score_correction_bias"},
    ),
    "minicpm3": Architecture(model_type="minicpm3", config=_minicpm3, layer=LAYER | _LATENT),
    "deepseek2": Architecture(
        model_type="deepseek_v3",
        config=_deepseek2,
        layer=LAYER | _LATENT | SHARED_EXPERTS,
        experts=Experts(),
        bare={"exp_probs_b": "mlp.gate.e_score_correction_bias"},
        joins={
            "attn_k_b": Join("attn_v_b", "self_attn.kv_b_proj", is_transposed=True, is_flat=True)
        },
    ),
}
