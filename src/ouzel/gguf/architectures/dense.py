"""Describes architectures with attention and feed-forward layers only; llama may have experts."""

import math
from collections.abc import Mapping

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.architectures.kind import (
    LAYER,
    MAX_HEAD_SIZE,
    QK_NORMS,
    Architecture,
    Change,
    Cut,
    Experts,
    permute_heads,
    read_biases,
)
from ouzel.gguf.facts import Facts


def _llama(facts: Facts) -> JsonObject:
    window = facts.integer("attention.sliding_window", 0)
    if facts.integer("expert_count", 0):
        return {
            "model_type": "mixtral",
            "num_local_experts": facts.integer("expert_count"),
            "num_experts_per_tok": facts.integer("expert_used_count"),
            "sliding_window": window or None,
        }
    return read_biases(facts) | (
        {"model_type": "mistral", "sliding_window": window} if window else {}
    )


def _mistral3(facts: Facts) -> JsonObject:
    """Returns the keys of Ministral 3, or of Mistral Small 3.1, which has the same name in GGUF.

    Only the queries of Ministral 3 are scaled by position.
    """
    if not facts.has("attention.temperature_scale"):
        return {"model_type": "mistral", "sliding_window": None}
    if (kind := facts.text("rope.scaling.type")) != "yarn":
        raise ModelLoadError(
            f"{facts.source}: mistral3.rope.scaling.type must be yarn, found {kind}"
        )
    return {
        "sliding_window": facts.integer("attention.sliding_window", 0) or None,
        "rope_scaling": {
            "rope_type": "yarn",
            "rope_theta": facts.number("rope.freq_base"),
            "factor": facts.number("rope.scaling.factor"),
            "original_max_position_embeddings": facts.integer(
                "rope.scaling.original_context_length"
            ),
            "beta_fast": facts.number("rope.scaling.yarn_beta_fast", 32.0),
            "beta_slow": facts.number("rope.scaling.yarn_beta_slow", 1.0),
            "mscale": 1.0,
            "mscale_all_dim": facts.number("rope.scaling.yarn_log_multiplier"),
            "llama_4_scaling_beta": facts.number("attention.temperature_scale"),
        },
    }


def _qwen(facts: Facts) -> JsonObject:
    facts.integer("attention.sliding_window", 0)  # models that do not use it have it, too
    return {
        "attention_bias": facts.has_tensor("blk.0.attn_output.bias"),
        "use_sliding_window": False,
    }


def _qwen3vl(facts: Facts) -> JsonObject:
    """Reads the language model; the number of its layers that take more features of pictures is in
    the mmproj file, too.
    """
    facts.integer("n_deepstack_layers", 0)
    return {"attention_bias": facts.has_tensor("blk.0.attn_output.bias")}


def _phi3(facts: Facts) -> JsonObject:
    window = facts.integer("attention.sliding_window", 0)
    original = facts.integer(
        "rope.scaling.original_context_length", facts.integer("context_length")
    )
    return {"sliding_window": window or None, "original_max_position_embeddings": original}


def read_granite(facts: Facts) -> JsonObject:
    return read_biases(facts) | {
        "attention_multiplier": facts.number("attention.scale", 1.0),
        "embedding_multiplier": facts.number("embedding_scale", 1.0),
        "residual_multiplier": facts.number("residual_scale", 1.0),
        "logits_scaling": facts.number("logit_scale", 1.0),
    }


def _minicpm(facts: Facts) -> JsonObject:
    """Reads the factors. Older files lack them; llama.cpp has the factors of the first models in
    its code.
    """
    root, hidden_size = math.sqrt(facts.num_blocks), facts.integer("embedding_length")
    logit_scale = facts.number("logit_scale", hidden_size / 256)
    if not logit_scale:
        raise ModelLoadError(f"{facts.source}: minicpm.logit_scale must not be 0")
    return read_biases(facts) | {
        "scale_emb": facts.number("embedding_scale", 12.0),
        "scale_depth": facts.number("residual_scale", 1.4 / root) * root,
        "dim_model_base": hidden_size / logit_scale,
    }


def _windows(facts: Facts) -> JsonObject:
    """Reads which layers have a window, from a file with a flag for each layer."""
    num_layers = facts.num_blocks
    slides = facts.flags("attention.sliding_window_pattern", num_layers)
    return {
        "sliding_window": facts.integer("attention.sliding_window"),
        "layer_types": ["sliding_attention" if slide else "full_attention" for slide in slides],
    }


def _olmo2(facts: Facts) -> JsonObject:
    """Returns the keys of OLMo 2, or of OLMo 3, which has the same name in GGUF and windows.

    Only the layers of OLMo 3 without a window have the extended context.
    """
    bias: JsonObject = {"attention_bias": facts.has_tensor("blk.0.attn_q.bias")}
    if not facts.has("attention.sliding_window"):
        return bias
    facts.number("rope.freq_base_swa", 0.0)
    return bias | _windows(facts) | {"model_type": "olmo3"}


def _exaone(facts: Facts) -> JsonObject:
    """Returns the keys of EXAONE 3, whose layers are Llama's, and whose config.json names the
    epsilon as layer norms do.
    """
    usual = facts.number("attention.layer_norm_epsilon", 1e-5)
    epsilon = facts.number("attention.layer_norm_rms_epsilon", usual)
    return read_biases(facts) | {"rms_norm_eps": epsilon}


def _exaone4(facts: Facts) -> JsonObject:
    return _windows(facts) if facts.has("attention.sliding_window") else {"sliding_window": None}


def _glm4(facts: Facts) -> JsonObject:
    """Returns the keys of GLM-4, or of GLM-OCR, which has the same name in GGUF.

    Only GLM-OCR rotates whole heads by positions in pictures.
    """
    bias: JsonObject = {"attention_bias": facts.has_tensor("blk.0.attn_q.bias")}
    num_dims = facts.integer("attention.key_length", 0)
    if facts.has("rope.dimension_sections") and num_dims == facts.integer(
        "rope.dimension_count", 0
    ):
        return bias | {"model_type": "glm_ocr_text"}
    return bias


def _chatglm(facts: Facts) -> JsonObject:
    return {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias")
        or facts.has_tensor("blk.0.attn_qkv.bias")
    }


def _cut_heads(facts: Facts) -> Mapping[str, Cut]:
    """Returns the cuts of a fused projection, which files of the model's own code have."""
    num_heads = facts.integer("attention.head_count")
    size = facts.integer("embedding_length") // max(num_heads, 1)
    keys = size * facts.integer("attention.head_count_kv", num_heads)
    names = {part: f"self_attn.{part}_proj" for part in "qkv"}
    rows = {names["q"]: size * num_heads, names["k"]: keys, names["v"]: keys}
    return {"attn_qkv": Cut(rows)}


def _interleaved_heads(facts: Facts) -> Mapping[str, Change]:
    """Returns the changes of queries and keys: files with positions in pictures have two halves,
    transformers has rotary pairs side by side.
    """
    if not facts.has("rope.dimension_sections"):
        return {}
    size, num_dims = facts.integer("attention.key_length"), facts.integer("rope.dimension_count")
    if not 0 < num_dims <= size <= MAX_HEAD_SIZE or num_dims % 2:
        raise ModelLoadError(
            f"{facts.source}: heads must have 1 to {MAX_HEAD_SIZE} dimensions, of which an even "
            f"number is rotated, found {size} and {num_dims}"
        )
    half = num_dims // 2
    pairs = (place for first in range(half) for place in (first, half + first))
    order = Change(row_order=(*pairs, *range(num_dims, size)))
    return {"attn_q": order, "attn_k": order}


def _seed_oss(facts: Facts) -> JsonObject:
    return read_biases(facts) | {"attention_out_bias": facts.has_tensor("blk.0.attn_output.bias")}


def _ernie4_5(facts: Facts) -> JsonObject:
    return {"use_bias": facts.has_tensor("blk.0.attn_q.bias")}


def read_epsilon(facts: Facts) -> float:
    """Reads the epsilon of norms that subtract the mean; some files have the RMS epsilon, too."""
    facts.number("attention.layer_norm_rms_epsilon", 0.0)
    return facts.number("attention.layer_norm_epsilon")


def _starcoder2(facts: Facts) -> JsonObject:
    bias, epsilon = facts.has_tensor("blk.0.attn_q.bias"), read_epsilon(facts)
    return {
        "use_bias": bias,
        "norm_epsilon": epsilon,
        "rms_norm_eps": epsilon,
        "sliding_window": None,
    }


def _nemotron(facts: Facts) -> JsonObject:
    epsilon = read_epsilon(facts)
    return read_biases(facts) | {"norm_eps": epsilon, "rms_norm_eps": epsilon}


def _jais2(facts: Facts) -> JsonObject:
    epsilon = read_epsilon(facts)
    return read_biases(facts) | {"layer_norm_eps": epsilon, "rms_norm_eps": epsilon}


def _stablelm(facts: Facts) -> JsonObject:
    """Reads from the tensors, as llama.cpp does, whether layers are parallel; ignores the key."""
    epsilon = read_epsilon(facts)
    facts.flag("use_parallel_residual", True)
    return {
        "layer_norm_eps": epsilon,
        "rms_norm_eps": epsilon,
        "use_qkv_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "qk_layernorm": facts.has_tensor("blk.0.attn_q_norm.weight"),
        "use_parallel_residual": not facts.has_tensor("blk.0.ffn_norm.weight"),
    }


def _cohere2(facts: Facts) -> JsonObject:
    """Returns the keys; every fourth layer, without window and rotary positions, needs no key."""
    epsilon = read_epsilon(facts)
    return {
        "layer_norm_eps": epsilon,
        "rms_norm_eps": epsilon,
        "logit_scale": facts.number("logit_scale"),
        "sliding_window": facts.integer("attention.sliding_window"),
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
    }


_NORMS_AFTER = {
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_GLM4_NORMS = {
    "post_attention_norm": "post_self_attn_layernorm",
    "post_ffw_norm": "post_mlp_layernorm",
}
_FUSED_MLP = {"ffn_up": "mlp.gate_up_proj"}


def _apertus(facts: Facts) -> JsonObject:
    """Reads the parameters of xIELU, which are tensors in transformers.

    Positions are scaled only if the file has factors, whereas config.json has a default scaling.
    """
    xielu = {
        name: facts.numbers_by_layer(f"xielu.{name}")
        for name in ("alpha_p", "alpha_n", "beta", "eps")
    }
    own: JsonObject = {"attention_bias": facts.has_tensor("blk.0.attn_q.bias"), "xielu": xielu}
    if not facts.has_tensor("rope_freqs.weight"):
        own["rope_scaling"] = {"rope_type": "default"}
    return own


DENSE = {
    "llama": Architecture(
        model_type="llama",
        config=_llama,
        layer=LAYER | {"ffn_gate_inp": "block_sparse_moe.gate"},
        experts=Experts(prefix="block_sparse_moe.experts.", gate="w1", up="w3", down="w2"),
        changes=permute_heads,
    ),
    "mistral3": Architecture(model_type="ministral3", config=_mistral3, changes=permute_heads),
    "arcee": Architecture(model_type="arcee", config=read_biases, changes=permute_heads),
    "smollm3": Architecture(model_type="smollm3", changes=permute_heads),
    "granite": Architecture(model_type="granite", config=read_granite, changes=permute_heads),
    "minicpm": Architecture(model_type="minicpm", config=_minicpm, changes=permute_heads),
    "apertus": Architecture(
        model_type="apertus",
        config=_apertus,
        layer=LAYER
        | QK_NORMS
        | {"attn_norm": "attention_layernorm", "ffn_norm": "feedforward_layernorm"},
    ),
    "qwen2": Architecture(model_type="qwen2", config=_qwen),
    "qwen2vl": Architecture(model_type="qwen2_vl_text", config=_qwen),
    "qwen3": Architecture(model_type="qwen3", config=_qwen, layer=LAYER | QK_NORMS),
    "qwen3vl": Architecture(model_type="qwen3_vl_text", config=_qwen3vl, layer=LAYER | QK_NORMS),
    "phi3": Architecture(
        model_type="phi3",
        config=_phi3,
        layer=LAYER | _FUSED_MLP | {"attn_qkv": "self_attn.qkv_proj"},
    ),
    "olmo2": Architecture(model_type="olmo2", config=_olmo2, layer=LAYER | QK_NORMS | _NORMS_AFTER),
    "exaone4": Architecture(
        model_type="exaone4", config=_exaone4, layer=LAYER | QK_NORMS | _NORMS_AFTER
    ),
    "glm4": Architecture(
        model_type="glm4",
        config=_glm4,
        layer=LAYER | _GLM4_NORMS | _FUSED_MLP,
        changes=_interleaved_heads,
    ),
    "chatglm": Architecture(
        model_type="glm", config=_chatglm, layer=LAYER | _FUSED_MLP, cuts=_cut_heads
    ),
    "exaone": Architecture(model_type="llama", config=_exaone),
    "internlm2": Architecture(model_type="llama", config=read_biases, changes=permute_heads),
    "ernie4_5": Architecture(model_type="ernie4_5", config=_ernie4_5),
    "hunyuan-dense": Architecture(
        model_type="hunyuan_v1_dense",
        config=read_biases,
        layer=LAYER
        | {"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"},
    ),
    "seed_oss": Architecture(
        model_type="seed_oss",
        config=_seed_oss,
        layer=LAYER | {"post_attention_norm": "post_attention_layernorm"},
    ),
    "starcoder2": Architecture(
        model_type="starcoder2",
        config=_starcoder2,
        layer=LAYER | {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
    ),
    "stablelm": Architecture(model_type="stablelm", config=_stablelm),
    "nemotron": Architecture(model_type="nemotron", config=_nemotron, unshifted_norms=frozenset()),
    "jais2": Architecture(model_type="jais2", config=_jais2),
    "cohere2": Architecture(model_type="cohere2", config=_cohere2),
}
