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
_QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}


def _nothing(_: Facts) -> JsonObject:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    model_type: str
    config: Callable[[Facts], JsonObject] = _nothing  # what is there besides what all have
    layer: Mapping[str, str] = field(default_factory=lambda: _LAYER)
    outer: Mapping[str, str] = field(default_factory=dict)  # tensors outside of layers with names of their own
    permutes_heads: bool = False  # rows of each head of queries and keys are stored in another order
    shifts_norms: bool = False  # weights of norms are stored with the 1 that the model adds


def _llama(facts: Facts) -> JsonObject:
    bias = {"attention_bias": facts.has_tensor("blk.0.attn_q.bias"), "mlp_bias": facts.has_tensor("blk.0.ffn_up.bias")}
    if facts.integer("expert_count", 0):
        raise ModelLoadError(f"{facts.source}: llama.expert_count is not supported, only llama without experts")
    window = facts.integer("attention.sliding_window", 0)
    return bias | ({"model_type": "mistral", "sliding_window": window} if window else {})


def _qwen(facts: Facts) -> JsonObject:
    facts.integer("attention.sliding_window", 0)  # written for models that do not use it, too
    return {"attention_bias": facts.has_tensor("blk.0.attn_output.bias"), "use_sliding_window": False}


ARCHITECTURES = {
    "llama": Architecture(model_type="llama", config=_llama, permutes_heads=True),
    "qwen2": Architecture(model_type="qwen2", config=_qwen),
    "qwen3": Architecture(model_type="qwen3", config=_qwen, layer=_LAYER | _QK_NORMS),
    "smollm3": Architecture(model_type="smollm3", permutes_heads=True),
}


def architecture_of(name: str, source: str) -> Architecture:
    known = ARCHITECTURES.get(name)
    if known is None:
        raise ModelLoadError(
            f"{source}: general.architecture {name} is not supported; supported: {', '.join(sorted(ARCHITECTURES))}"
        )
    return known
