"""Describes architectures with Mamba layers: Mamba, Falcon-H1, Mamba-2 and Nemotron-H.

In Mamba-2 layers `ssm.time_step_rank` is the number of heads, and `ssm.inner_size` the dimensions
of all heads.
"""

from collections.abc import Mapping

from ouzel.checkpoint.model_files import JsonObject
from ouzel.gguf.architectures.kind import (
    LAYER,
    Architecture,
    Change,
    Experts,
    read_biases,
    read_experts,
)
from ouzel.gguf.facts import Facts

MAMBA_CHANGES = {"ssm_a": Change(is_rate=True, is_flat=True)} | {
    part: Change(is_flat=True) for part in ("ssm_d", "ssm_norm")
}


def name_mamba_layer(prefix: str) -> dict[str, str]:
    return {
        "ssm_in": f"{prefix}in_proj",
        "ssm_conv1d": f"{prefix}conv1d",
        "ssm_norm": f"{prefix}norm",
        "ssm_out": f"{prefix}out_proj",
    }


def name_bare_mamba(prefix: str) -> dict[str, str]:
    """Names the tensors of a Mamba layer that have no `.weight`."""
    return {"ssm_a": f"{prefix}A_log", "ssm_d": f"{prefix}D", "ssm_dt": f"{prefix}dt_bias"}


def has_part(facts: Facts, part: str) -> bool:
    """Tells whether any layer has the part; `part` has its `.weight` or `.bias`."""
    return any(facts.has_tensor(f"blk.{layer}.{part}") for layer in range(facts.num_blocks))


def _change_mamba(_: Facts) -> Mapping[str, Change]:
    return MAMBA_CHANGES


def _falcon_h1(facts: Facts) -> JsonObject:
    """Reads the layers; the weights are stored with all factors of the model."""
    num_heads, inner_size = facts.integer("ssm.time_step_rank"), facts.integer("ssm.inner_size")
    return read_biases(facts) | {
        "mamba_d_conv": facts.integer("ssm.conv_kernel"),
        "mamba_d_state": facts.integer("ssm.state_size"),
        "mamba_n_groups": facts.integer("ssm.group_count"),
        "mamba_n_heads": num_heads,
        "mamba_d_ssm": inner_size,
        "mamba_d_head": inner_size // max(num_heads, 1),
        "mamba_rms_norm": has_part(facts, "ssm_norm.weight"),
        "mamba_norm_before_gate": False,
        "mamba_conv_bias": has_part(facts, "ssm_conv1d.bias"),
        "mamba_proj_bias": has_part(facts, "ssm_in.bias"),
        "projectors_bias": has_part(facts, "ssm_out.bias"),
    }


def _state_layers(facts: Facts) -> JsonObject:
    """Reads the layers of a model without attention. Files have the number 0 for the heads of an
    attention, and for the size of feed-forward layers.
    """
    unused = ("attention.head_count", "feed_forward_length")
    return {
        "num_attention_heads": facts.integer(unused[0], 0),
        "num_key_value_heads": 0,
        "intermediate_size": facts.integer(unused[1], 0),
        "rope_theta": None,
        "layer_norm_epsilon": facts.number("attention.layer_norm_rms_epsilon"),
        "state_size": facts.integer("ssm.state_size"),
        "conv_kernel": facts.integer("ssm.conv_kernel"),
        "use_conv_bias": has_part(facts, "ssm_conv1d.bias"),
        "use_bias": has_part(facts, "ssm_in.bias"),
    }


def _mamba(facts: Facts) -> JsonObject:
    """Returns the keys of Mamba, or of Falcon Mamba, which has the same name in GGUF and norms.

    The epsilon of these norms is not in the file: published models have the default.
    """
    has_norms = facts.flag("ssm.dt_b_c_rms", False)
    return _state_layers(facts) | {
        "model_type": "falcon_mamba" if has_norms else "mamba",
        "intermediate_size": facts.integer("ssm.inner_size"),
        "time_step_rank": facts.integer("ssm.time_step_rank"),
    }


def _mamba2(facts: Facts) -> JsonObject:
    num_heads, inner_size = facts.integer("ssm.time_step_rank"), facts.integer("ssm.inner_size")
    return _state_layers(facts) | {
        "num_heads": num_heads,
        "head_dim": inner_size // max(num_heads, 1),
        "expand": inner_size // max(facts.integer("embedding_length"), 1),
        "n_groups": facts.integer("ssm.group_count"),
    }


def _nemotron_h(facts: Facts) -> JsonObject:
    """Reads the kinds of layers.

    Attention has key heads, a feed-forward layer has a size, and Mamba has neither.
    """
    num_blocks, num_layers = facts.num_blocks, facts.num_layers
    sizes = facts.integers("feed_forward_length", num_blocks)[:num_layers]
    num_kv_heads = facts.integers("attention.head_count_kv", num_blocks)[:num_layers]
    feed_forward = "moe" if has_part(facts, "ffn_up_exps.weight") else "mlp"
    kinds = [
        "attention" if num_heads else feed_forward if size else "mamba"
        for num_heads, size in zip(num_kv_heads, sizes, strict=True)
    ]
    num_heads = facts.integer("ssm.time_step_rank")
    epsilon = facts.number("attention.layer_norm_epsilon", 1e-5)
    epsilon = facts.number("attention.layer_norm_rms_epsilon", epsilon)
    return {
        "layers_block_type": kinds,
        "num_key_value_heads": max(num_kv_heads, default=0),
        "intermediate_size": max(sizes, default=0) or 1,
        "layer_norm_epsilon": epsilon,
        "rms_norm_eps": epsilon,
        # files without experts may have these numbers, too
        "n_routed_experts": facts.integer("expert_count", 1),
        "n_group": facts.integer("expert_group_count", 1),
        "topk_group": facts.integer("expert_group_used_count", 1),
        "mlp_bias": has_part(facts, "ffn_up.bias"),
        "mamba_num_heads": num_heads,
        "mamba_head_dim": facts.integer("ssm.inner_size") // max(num_heads, 1),
        "ssm_state_size": facts.integer("ssm.state_size"),
        "n_groups": facts.integer("ssm.group_count"),
        "conv_kernel": facts.integer("ssm.conv_kernel"),
        "use_conv_bias": has_part(facts, "ssm_conv1d.bias"),
        "use_bias": has_part(facts, "ssm_in.bias"),
    }


def _nemotron_h_moe(facts: Facts) -> JsonObject:
    facts.integer("expert_shared_count", 1)  # repeats the size of the shared expert
    experts = read_experts(facts)
    del experts["num_experts"]
    return (
        _nemotron_h(facts)
        | experts
        | {
            "moe_shared_expert_intermediate_size": facts.integer(
                "expert_shared_feed_forward_length"
            ),
            "norm_topk_prob": facts.flag("expert_weights_norm", True),
            "routed_scaling_factor": facts.number("expert_weights_scale", 1.0),
            "moe_latent_size": facts.integer("moe_latent_size", 0) or None,
        }
    )


_OUTER = {"token_embd": "model.embeddings", "output_norm": "model.norm_f"}
_NEMOTRON_LAYER = name_mamba_layer("mixer.") | {
    "attn_norm": "norm",
    "attn_q": "mixer.q_proj",
    "attn_k": "mixer.k_proj",
    "attn_v": "mixer.v_proj",
    "attn_output": "mixer.o_proj",
    "ffn_up": "mixer.up_proj",
    "ffn_down": "mixer.down_proj",
    "ffn_gate_inp": "mixer.gate",
    "ffn_up_shexp": "mixer.shared_experts.up_proj",
    "ffn_down_shexp": "mixer.shared_experts.down_proj",
}

MAMBAS = {
    "falcon-h1": Architecture(
        model_type="falcon_h1",
        config=_falcon_h1,
        layer=LAYER
        | name_mamba_layer("mamba.")
        | {f"ffn_{part}": f"feed_forward.{part}_proj" for part in ("gate", "up", "down")},
        outer={"output_norm": "model.final_layernorm"},
        bare=name_bare_mamba("mamba.") | {"ffn_norm": "pre_ff_layernorm.weight"},
        changes=_change_mamba,
    ),
    "mamba": Architecture(
        model_type="mamba",
        config=_mamba,
        layer=name_mamba_layer("mixer.")
        | {"attn_norm": "norm", "ssm_x": "mixer.x_proj", "ssm_dt": "mixer.dt_proj"},
        outer=_OUTER,
        bare={"ssm_a": "mixer.A_log", "ssm_d": "mixer.D"},
        changes=lambda _: {"ssm_a": Change(is_rate=True)},
    ),
    "mamba2": Architecture(
        model_type="mamba2",
        config=_mamba2,
        layer=name_mamba_layer("mixer.") | {"attn_norm": "norm"},
        outer=_OUTER,
        bare=name_bare_mamba("mixer."),
        changes=_change_mamba,
    ),
    "nemotron_h": Architecture(
        model_type="nemotron_h",
        config=_nemotron_h,
        layer=_NEMOTRON_LAYER,
        outer=_OUTER,
        bare=name_bare_mamba("mixer."),
        changes=_change_mamba,
    ),
    "nemotron_h_moe": Architecture(
        model_type="nemotron_h",
        config=_nemotron_h_moe,
        layer=_NEMOTRON_LAYER,
        outer=_OUTER,
        bare=name_bare_mamba("mixer.") | {"exp_probs_b": "mixer.gate.e_score_correction_bias"},
        experts=Experts(prefix="mixer.experts."),
        changes=_change_mamba,
    ),
}
