"""Describes architectures whose experts have DeepSeek's routing without its latent attention."""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.kind import (
    LAYER,
    NUMBERED_PREDICTION,
    QK_NORMS,
    Architecture,
    Experts,
)
from ouzel.gguf.facts import Facts

SHARED_EXPERTS = {
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
    "ffn_up_shexp": "mlp.shared_experts.up_proj",
    "ffn_down_shexp": "mlp.shared_experts.down_proj",
}
SOFTMAX, SIGMOID = 1, 2  # GGUF's numbers for gating functions


def read_routed_experts(facts: Facts) -> JsonObject:
    """Returns the keys of transformers that DeepSeek's kin have, without the choice of scores."""
    return {
        "first_k_dense_replace": facts.integer("leading_dense_block_count", 0),
        "n_routed_experts": facts.integer("expert_count"),
        "n_shared_experts": facts.integer("expert_shared_count"),
        "num_experts_per_tok": facts.integer("expert_used_count"),
        "moe_intermediate_size": facts.integer("expert_feed_forward_length"),
        "n_group": facts.integer("expert_group_count", 1),
        "topk_group": facts.integer("expert_group_used_count", 1),
        "norm_topk_prob": facts.flag("expert_weights_norm", False),
        "routed_scaling_factor": facts.number("expert_weights_scale", 1.0),
    }


def require_sigmoid(facts: Facts) -> None:
    if (kind := facts.integer("expert_gating_func", SIGMOID)) != SIGMOID:
        raise ModelLoadError(
            f"{facts.source}: {facts.architecture}.expert_gating_func must be {SIGMOID}, a "
            f"sigmoid, found {kind}"
        )


def _glm4moe(facts: Facts) -> JsonObject:
    require_sigmoid(facts)
    head_dim = facts.integer("attention.key_length")
    share = facts.integer("rope.dimension_count") / max(head_dim, 1)
    return read_routed_experts(facts) | {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "use_qk_norm": facts.has_tensor("blk.0.attn_q_norm.weight"),
        "partial_rotary_factor": share,
    }


def _minimax_m2(facts: Facts) -> JsonObject:
    require_sigmoid(facts)
    facts.integer("feed_forward_length", 0)  # repeats the size of experts
    return {
        "num_local_experts": facts.integer("expert_count"),
        "num_experts_per_tok": facts.integer("expert_used_count"),
        "intermediate_size": facts.integer("expert_feed_forward_length"),
    }


def _dots1(facts: Facts) -> JsonObject:
    require_sigmoid(facts)
    facts.integer("expert_shared_feed_forward_length", 0)  # repeats the shape of a tensor
    return read_routed_experts(facts) | {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "sliding_window": None,
    }


def _hunyuan_moe(facts: Facts) -> JsonObject:
    facts.integer("expert_shared_feed_forward_length", 0)  # repeats the shape of a tensor
    return {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "num_experts": facts.integer("expert_count"),
        "moe_topk": facts.integer("expert_used_count"),
        "moe_intermediate_size": facts.integer("expert_feed_forward_length"),
        "num_shared_expert": facts.integer("expert_shared_count", 1),
    }


EXPERTS = {
    "dots1": Architecture(
        model_type="dots1",
        config=_dots1,
        layer=LAYER | QK_NORMS | SHARED_EXPERTS,
        experts=Experts(),
        bare={"exp_probs_b": "mlp.gate.e_score_correction_bias"},
    ),
    "glm4moe": Architecture(
        model_type="glm4_moe",
        config=_glm4moe,
        layer=LAYER
        | QK_NORMS
        | SHARED_EXPERTS
        | {"post_attention_norm": "post_attention_layernorm"},
        experts=Experts(),
        bare={"exp_probs_b": "mlp.gate.e_score_correction_bias"},
        prediction=NUMBERED_PREDICTION,
    ),
    "hunyuan-moe": Architecture(
        model_type="hunyuan_v1_moe",
        config=_hunyuan_moe,
        layer=LAYER
        | {
            "attn_q_norm": "self_attn.query_layernorm",
            "attn_k_norm": "self_attn.key_layernorm",
            "ffn_gate_inp": "mlp.gate.wg",
            "ffn_gate_shexp": "mlp.shared_mlp.gate_proj",
            "ffn_up_shexp": "mlp.shared_mlp.up_proj",
            "ffn_down_shexp": "mlp.shared_mlp.down_proj",
        },
        experts=Experts(),
    ),
    "minimax-m2": Architecture(
        model_type="minimax_m2",
        config=_minimax_m2,
        layer=LAYER | QK_NORMS | {"ffn_gate_inp": "block_sparse_moe.gate"},
        experts=Experts(prefix="block_sparse_moe.experts.", gate="w1", up="w3", down="w2"),
        bare={"exp_probs_b": "block_sparse_moe.e_score_correction_bias"},
    ),
}
