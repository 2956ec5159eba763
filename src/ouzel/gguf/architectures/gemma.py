"""Describes the architectures of Gemma 2, 3, 3n and 4, and of EmbeddingGemma."""

from statistics import NormalDist

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.kind import LAYER, QK_NORMS, Architecture
from ouzel.gguf.facts import Facts

DENSE_PARTS = ("dense_2", "dense_3")  # layers behind the pooling, in their order
_SLIDING, _FULL = "sliding_attention", "full_attention"


def _gemma2(facts: Facts) -> JsonObject:
    """Reads the soft caps; files that lack them have the caps of the published models."""
    return {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "query_pre_attn_scalar": _query_scalar(facts, layers_of_27b=46),
        "sliding_window": facts.integer("attention.sliding_window", 4096),
        "attn_logit_softcapping": facts.number("attn_logit_softcapping", 50.0) or None,
        "final_logit_softcapping": facts.number("final_logit_softcapping", 30.0) or None,
    }


def _query_scalar(facts: Facts, *, layers_of_27b: int) -> int:
    """Derives the scale of the attention from the size, as llama.cpp does: the 27B model differs.

    The file does not have the scale.
    """
    if facts.num_blocks != layers_of_27b:
        return facts.integer("attention.key_length")
    return facts.integer("embedding_length") // max(facts.integer("attention.head_count"), 1)


def _gemma3(facts: Facts) -> JsonObject:
    return {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "query_pre_attn_scalar": _query_scalar(facts, layers_of_27b=62),
        "sliding_window": facts.integer("attention.sliding_window"),
        "sliding_window_pattern": facts.integer("attention.sliding_window_pattern", 6),
        "rope_local_base_freq": facts.number("rope.freq_base_swa", 10000.0),
        "final_logit_softcapping": facts.number("final_logit_softcapping", 0.0) or None,
    }


def _gemma_embedding(facts: Facts) -> JsonObject:
    """Reads EmbeddingGemma; `dense_2` and `dense_3` follow the pooling if the file has them."""
    for name in DENSE_PARTS:
        if facts.has_tensor(f"{name}.weight"):
            shape = facts.tensor_shape(f"{name}.weight")
            for key, size in {f"{name}_feat_out": shape[0], f"{name}_feat_in": shape[-1]}.items():
                if (found := facts.integer(key, size)) != size:
                    raise ModelLoadError(
                        f"{facts.source}: {facts.architecture}.{key} must be {size}, "
                        f"as {name}.weight has it, found {found}"
                    )
    return _gemma3(facts) | {
        "query_pre_attn_scalar": facts.integer("attention.key_length"),
        "use_bidirectional_attention": True,
    }


def _gemma3n(facts: Facts) -> JsonObject:
    """Reads the cutoffs of gates, which are deviations of a normal distribution, as shares.

    Older files lack them; they have the layers of the published models.
    """
    num_layers = facts.num_blocks
    config: JsonObject = {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "intermediate_size": facts.integers("feed_forward_length", num_layers),
        "sliding_window": facts.integer("attention.sliding_window"),
        "rope_local_base_freq": facts.number("rope.freq_base_swa", 10000.0),
        "rope_theta": facts.number("rope.freq_base", 1_000_000.0),
        "final_logit_softcapping": facts.number("final_logit_softcapping", 30.0) or None,
        "altup_active_idx": facts.integer("altup.active_idx", 0),
        "altup_num_inputs": facts.integer("altup.num_inputs", 4),
        "laurel_rank": facts.tensor_shape("blk.0.laurel_l.weight")[0],
        "num_kv_shared_layers": facts.integer("attention.shared_kv_layers", num_layers - 20),
        "hidden_size_per_layer_input": facts.integer("embedding_length_per_layer_input"),
        "vocab_size_per_layer_input": facts.tensor_shape("per_layer_token_embd.weight")[0],
    }
    if facts.has("attention.sliding_window_pattern"):
        slides = facts.flags("attention.sliding_window_pattern", num_layers)
        config["layer_types"] = [_SLIDING if slide else _FULL for slide in slides]
    if facts.has("activation_sparsity_scale"):
        cutoffs = facts.numbers("activation_sparsity_scale", num_layers)
        config["activation_sparsity_pattern"] = [NormalDist().cdf(cutoff) for cutoff in cutoffs]
    return config


def _gemma4(facts: Facts) -> JsonObject:
    """Reads both kinds of layers: keys without `_swa` belong to layers without a window."""
    num_layers = facts.num_blocks
    slides = facts.flags("attention.sliding_window_pattern", num_layers)
    num_kv_heads = facts.integers("attention.head_count_kv", num_layers)
    head_dim = facts.integer("attention.key_length_swa")
    full_head_dim = facts.integer("attention.key_length")
    for key, keys in {"value_length_swa": head_dim, "value_length": full_head_dim}.items():
        if (values := facts.integer(f"attention.{key}", keys)) != keys:
            raise ModelLoadError(
                f"{facts.source}: attention.{key} must be {keys}, the length of keys, "
                f"found {values}"
            )
    full = [layer for layer in range(num_layers) if not slides[layer]]
    inner_sizes = facts.integers("feed_forward_length", num_layers)
    num_shared = facts.integer("attention.shared_kv_layers")
    layer_size = facts.integer("embedding_length_per_layer_input", 0)
    layer_vocab_size = 1
    if layer_size:
        layer_vocab_size = facts.tensor_shape("per_layer_token_embd.weight")[0]
    return {
        "layer_types": [_SLIDING if slide else _FULL for slide in slides],
        "sliding_window": facts.integer("attention.sliding_window"),
        "head_dim": head_dim,
        "num_key_value_heads": next(
            (n for n, slide in zip(num_kv_heads, slides, strict=True) if slide), 1
        ),
        "per_layer_config": {
            str(layer): {"head_dim": full_head_dim, "num_key_value_heads": num_kv_heads[layer]}
            for layer in full
        },
        "attention_k_eq_v": bool(full) and not facts.has_tensor(f"blk.{full[0]}.attn_v.weight"),
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "intermediate_size": _inner_size(facts, inner_sizes, num_shared),
        "use_double_wide_mlp": len(set(inner_sizes)) > 1,
        "num_kv_shared_layers": num_shared,
        "hidden_size_per_layer_input": layer_size,
        "vocab_size_per_layer_input": layer_vocab_size,
        "rope_parameters": _ropes(facts, head_dim, full_head_dim),
        "rope_scaling": None,
        "partial_rotary_factor": None,
        "final_logit_softcapping": facts.number("final_logit_softcapping", 0.0),
    } | _experts(facts)


def _inner_size(facts: Facts, sizes: list[int], num_shared: int) -> int:
    """Returns the inner size, of which the last `num_shared` layers may have twice as much."""
    size, num_own = sizes[0], len(sizes) - num_shared
    if sizes not in ([size] * len(sizes), [size] * num_own + [2 * size] * num_shared):
        raise ModelLoadError(
            f"{facts.source}: feed_forward_length must be one number, or twice the number in "
            f"the last {num_shared} layers, found {sorted(set(sizes))}"
        )
    return size


def _ropes(facts: Facts, head_dim: int, full_head_dim: int) -> JsonObject:
    """Reads the rotary settings. Pairs that are not rotated have the divisor 1e30, the others 1."""
    divisors = facts.floats("rope_freqs.weight")
    turned = [divisor for divisor in divisors if divisor < 1e29]
    if len(divisors) != full_head_dim // 2 or divisors[: len(turned)] != [1.0] * len(turned):
        raise ModelLoadError(
            f"{facts.source}: rope_freqs.weight must be {full_head_dim // 2} numbers: "
            "first ones, then 1e30"
        )
    sizes = {"rope.dimension_count": full_head_dim, "rope.dimension_count_swa": head_dim}
    for key, size in sizes.items():
        if (count := facts.integer(key, size)) != size:
            raise ModelLoadError(
                f"{facts.source}: {key} must be {size}, the size of a head, found {count}"
            )
    return {
        _SLIDING: {
            "rope_type": "default",
            "rope_theta": facts.number("rope.freq_base_swa", 10000.0),
        },
        _FULL: {
            "rope_type": "proportional",
            "rope_theta": facts.number("rope.freq_base"),
            "partial_rotary_factor": len(turned) / len(divisors),
        },
    }


def _experts(facts: Facts) -> JsonObject:
    if not facts.integer("expert_count", 0):
        return {"enable_moe_block": False}
    return {
        "enable_moe_block": True,
        "num_experts": facts.integer("expert_count"),
        "top_k_experts": facts.integer("expert_used_count"),
        "moe_intermediate_size": facts.integer("expert_feed_forward_length"),
    }


_NORMS = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_EMBEDDING_OF_LAYER = {
    "inp_gate": "per_layer_input_gate",
    "proj": "per_layer_projection",
    "post_norm": "post_per_layer_input_norm",
}
_LAYER_EMBEDDINGS = {
    "per_layer_token_embd": "model.embed_tokens_per_layer",
    "per_layer_model_proj": "model.per_layer_model_projection",
    "per_layer_proj_norm": "model.per_layer_projection_norm",
}
_GEMMA3N_LAYER = {
    "altup_correct_coef": "altup.correction_coefs",
    "altup_predict_coef": "altup.prediction_coefs",
    "altup_router": "altup.modality_router",
    "altup_router_norm": "altup.router_norm",
    "laurel_l": "laurel.linear_left",
    "laurel_r": "laurel.linear_right",
    "laurel_post_norm": "laurel.post_laurel_norm",
}
_GEMMA4_LAYER = {
    "post_ffw_norm_1": "post_feedforward_layernorm_1",
    "post_ffw_norm_2": "post_feedforward_layernorm_2",
    "pre_ffw_norm_2": "pre_feedforward_layernorm_2",
    "ffn_gate_inp": "router.proj",
}

GEMMA = {
    "gemma2": Architecture(
        model_type="gemma2",
        config=_gemma2,
        layer=LAYER | _NORMS,
        unshifted_norms=frozenset(),
    ),
    "gemma": Architecture(model_type="gemma", unshifted_norms=frozenset()),
    "gemma3": Architecture(
        model_type="gemma3_text",
        config=_gemma3,
        layer=LAYER | QK_NORMS | _NORMS,
        unshifted_norms=frozenset(),
    ),
    "gemma-embedding": Architecture(
        model_type="gemma3_text",
        makes_vectors=True,
        config=_gemma_embedding,
        layer=LAYER | QK_NORMS | _NORMS,
        outer={name: f"{name}.linear" for name in DENSE_PARTS},
        unshifted_norms=frozenset(),
    ),
    "gemma3n": Architecture(
        model_type="gemma3n_text",
        config=_gemma3n,
        layer=LAYER | QK_NORMS | _NORMS | _EMBEDDING_OF_LAYER | _GEMMA3N_LAYER,
        outer=_LAYER_EMBEDDINGS,
        stacks={
            "altup_proj": "model.altup_projections",
            "altup_unembd_proj": "model.altup_unembed_projections",
        },
        bare={"altup_correct_scale": "altup.correct_output_scale"},
    ),
    "gemma4": Architecture(
        model_type="gemma4_text",
        config=_gemma4,
        layer=LAYER | QK_NORMS | _NORMS | _EMBEDDING_OF_LAYER | _GEMMA4_LAYER,
        outer=_LAYER_EMBEDDINGS,
        bare={
            "layer_output_scale": "layer_scalar",
            "ffn_gate_inp.scale": "router.scale",
            "ffn_down_exps.scale": "router.per_expert_scale",
            "ffn_gate_up_exps": "experts.gate_up_proj",
            "ffn_down_exps": "experts.down_proj",
        },
    ),
}
