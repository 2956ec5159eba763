"""What transformers calls what a GGUF file calls otherwise: models, keys of the configuration, tensors.

Names: the package gguf of llama.cpp, constants.py (MODEL_TENSORS, Keys) and tensor_mapping.py; what the numbers mean,
and what is done to tensors when a file is written: llama.cpp, convert_hf_to_gguf.py. An architecture is an entry of
ARCHITECTURES.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ouzel.errors import ModelLoadError
from ouzel.gguf.facts import Facts
from ouzel.tokenizer.model_files import JsonObject

# Parts of layers, `blk.<number>.<this>.weight`: `model.layers.<number>.<that>.weight`.
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_SIGMOID = 2  # the number that GGUF has for it
_QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}


@dataclass(frozen=True, slots=True)
class Experts:
    """The matrices of all experts are one tensor each, `ffn_gate_exps`; transformers has one for each expert,
    `experts.<number>.gate_proj`, or, where those of gate and up are alternating rows of one, two for all experts."""

    prefix: str = "mlp.experts."
    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"
    are_alternating: bool = False

    def name(self, part: str) -> str | None:
        """Returns transformers' name for a part of a layer; None where it is no matrix of experts."""
        return {"ffn_gate_exps": self.gate, "ffn_up_exps": self.up, "ffn_down_exps": self.down}.get(part)


def _nothing(_: Facts) -> JsonObject:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    model_type: str
    config: Callable[[Facts], JsonObject] = _nothing  # what is there besides what all have
    layer: Mapping[str, str] = field(default_factory=lambda: _LAYER)
    outer: Mapping[str, str] = field(default_factory=dict)  # tensors outside of layers with names of their own
    experts: Experts | None = None
    bare: Mapping[str, str] = field(default_factory=dict)  # parts of layers that have no `.weight` in transformers
    permutes_heads: bool = False  # rows of each head of queries and keys are stored in another order
    yarn: Mapping[str, object] = field(default_factory=dict)  # of its rotary positions, what no file says
    shifts_norms: bool = False  # weights of norms are stored with the 1 that the model adds


def _llama(facts: Facts) -> JsonObject:
    if facts.integer("expert_count", 0):
        raise ModelLoadError(f"{facts.source}: llama.expert_count is not supported, only llama without experts")
    window = facts.integer("attention.sliding_window", 0)
    return _biases(facts) | ({"model_type": "mistral", "sliding_window": window} if window else {})


def _biases(facts: Facts) -> JsonObject:
    return {"attention_bias": facts.has_tensor("blk.0.attn_q.bias"), "mlp_bias": facts.has_tensor("blk.0.ffn_up.bias")}


def _qwen(facts: Facts) -> JsonObject:
    facts.integer("attention.sliding_window", 0)  # written for models that do not use it, too
    return {"attention_bias": facts.has_tensor("blk.0.attn_output.bias"), "use_sliding_window": False}


def _qwen3moe(facts: Facts) -> JsonObject:
    return _qwen(facts) | _experts(facts) | {"norm_topk_prob": True, "decoder_sparse_step": 1}


def _experts(facts: Facts) -> JsonObject:
    return {
        "num_experts": facts.integer("expert_count"),
        "num_experts_per_tok": facts.integer("expert_used_count"),
        "moe_intermediate_size": facts.integer("expert_feed_forward_length"),
    }


def _gpt_oss(facts: Facts) -> JsonObject:
    experts = _experts(facts)
    inner = experts.pop("moe_intermediate_size")
    return experts | {
        "num_local_experts": experts["num_experts"],
        "intermediate_size": inner,
        "sliding_window": facts.integer("attention.sliding_window"),
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
    }


def _phi3(facts: Facts) -> JsonObject:
    window = facts.integer("attention.sliding_window", 0)
    original = facts.integer("rope.scaling.original_context_length", facts.integer("context_length"))
    return {"sliding_window": window or None, "original_max_position_embeddings": original}


def _gemma3(facts: Facts) -> JsonObject:
    """The scale of the attention is not in the file: llama.cpp has it by the size, of which one is another."""
    head_dim = facts.integer("attention.key_length")
    is_27b = facts.num_layers == 62
    per_head = facts.integer("embedding_length") // max(facts.integer("attention.head_count"), 1)
    return {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "query_pre_attn_scalar": per_head if is_27b else head_dim,
        "sliding_window": facts.integer("attention.sliding_window"),
        "sliding_window_pattern": facts.integer("attention.sliding_window_pattern", 6),
        "rope_local_base_freq": facts.number("rope.freq_base_swa", 10000.0),
        "final_logit_softcapping": facts.number("final_logit_softcapping", 0.0) or None,
    }


def _granite(facts: Facts) -> JsonObject:
    return _biases(facts) | {
        "attention_multiplier": facts.number("attention.scale", 1.0),
        "embedding_multiplier": facts.number("embedding_scale", 1.0),
        "residual_multiplier": facts.number("residual_scale", 1.0),
        "logits_scaling": facts.number("logit_scale", 1.0),
    }


def _lfm2(facts: Facts) -> JsonObject:
    """Layers without heads for keys are convolutions."""
    num_kv_heads = facts.integers("attention.head_count_kv", facts.num_layers)
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
        raise ModelLoadError(f"{facts.source}: lfm2moe.expert_gating_func must be {_SIGMOID}, a sigmoid, found {kind}")
    num_dense = facts.integer("leading_dense_block_count")
    return (
        _lfm2(facts)
        | _experts(facts)
        | {
            "num_dense_layers": num_dense,
            "use_expert_bias": facts.has_tensor(f"blk.{num_dense}.exp_probs_b.bias"),
            "norm_topk_prob": facts.flag("expert_weights_norm", True),
            "routed_scaling_factor": facts.number("expert_weights_scale", 1.0),
        }
    )


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
_GEMMA3_LAYER = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_GPT_OSS_LAYER = {"post_attention_norm": "post_attention_layernorm", "ffn_gate_inp": "mlp.router"}

ARCHITECTURES = {
    "llama": Architecture(model_type="llama", config=_llama, permutes_heads=True),
    "qwen2": Architecture(model_type="qwen2", config=_qwen),
    "qwen3": Architecture(model_type="qwen3", config=_qwen, layer=_LAYER | _QK_NORMS),
    "qwen3moe": Architecture(
        model_type="qwen3_moe",
        config=_qwen3moe,
        layer=_LAYER | _QK_NORMS | {"ffn_gate_inp": "mlp.gate"},
        experts=Experts(),
    ),
    "smollm3": Architecture(model_type="smollm3", permutes_heads=True),
    "granite": Architecture(model_type="granite", config=_granite, permutes_heads=True),
    "phi3": Architecture(
        model_type="phi3",
        config=_phi3,
        layer=_LAYER | {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
    ),
    "gemma3": Architecture(
        model_type="gemma3_text", config=_gemma3, layer=_LAYER | _QK_NORMS | _GEMMA3_LAYER, shifts_norms=True
    ),
    "gpt-oss": Architecture(
        model_type="gpt_oss",
        config=_gpt_oss,
        layer=_LAYER | _GPT_OSS_LAYER,
        experts=Experts(are_alternating=True),
        bare={"attn_sinks": "self_attn.sinks"},
        yarn={"truncate": False},
    ),
    "lfm2": Architecture(
        model_type="lfm2", config=_lfm2, layer=_LFM2_LAYER, outer={"token_embd_norm": "model.embedding_norm"}
    ),
    "lfm2moe": Architecture(
        model_type="lfm2_moe",
        config=_lfm2moe,
        layer=_LFM2_LAYER | {"ffn_gate_inp": "feed_forward.gate"},
        outer={"token_embd_norm": "model.embedding_norm"},
        experts=Experts(prefix="feed_forward.experts.", gate="w1", up="w3", down="w2"),
        bare={"exp_probs_b": "feed_forward.expert_bias"},
    ),
}


def architecture_of(name: str, source: str) -> Architecture:
    known = ARCHITECTURES.get(name)
    if known is None:
        raise ModelLoadError(
            f"{source}: general.architecture {name} is not supported; supported: {', '.join(sorted(ARCHITECTURES))}"
        )
    return known
