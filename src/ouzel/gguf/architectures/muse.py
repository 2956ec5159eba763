"""Describes Muse Glimmer, whose files have a factor of queries as the weights of a norm."""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.gguf.architectures.kind import LAYER, Architecture, permute_heads
from ouzel.gguf.facts import Facts


def _muse_glimmer(facts: Facts) -> JsonObject:
    """Returns the keys; only layers with windows have rotary positions, as in llama.cpp."""
    slides = facts.flags("attention.sliding_window_pattern", facts.num_blocks)
    theta = facts.number("rope.freq_base", 10_000.0)
    return {
        "attention_bias": facts.has_tensor("blk.0.attn_q.bias"),
        "sliding_window": facts.integer("attention.sliding_window"),
        "layer_types": ["sliding_attention" if slide else "full_attention" for slide in slides],
        "layer_rope_theta": [theta if slide else 0 for slide in slides],
        "qk_scale_factor": facts.floats("blk.0.attn_q_norm.weight")[0],
        "output_multiplier": facts.number("logit_scale"),
        "final_logit_softcapping": facts.number("final_logit_softcapping"),
    }


MUSE = {
    "muse-glimmer": Architecture(
        model_type="muse_glimmer_text",
        config=_muse_glimmer,
        layer=LAYER
        | {
            "attn_gate": "self_attn.gate_proj",
            "post_attention_norm": "post_attention_layernorm",
            "ffn_norm": "pre_feedforward_layernorm",
            "post_ffw_norm": "post_feedforward_layernorm",
        },
        in_config=frozenset({"attn_q_norm", "attn_k_norm"}),
        changes=permute_heads,
        unshifted_norms=frozenset({"output_norm"}),
    ),
}
