"""nomic-bert: BERT with rotary positions, gated feed-forward layers and no biases.

Reference: transformers, models/nomic_bert/modeling_nomic_bert.py. Older checkpoints
(nomic-embed-text v1 and v1.5) have other keys in config.json, other names of tensors, and one
matrix for queries, keys and values.
"""

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.bert import BertShape, LayerNames, build_layers
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import read_rope
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan
from ouzel.errors import ModelLoadError

_OLDER_KEYS = {
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_layer": "num_hidden_layers",
    "n_inner": "intermediate_size",
    "n_positions": "max_position_embeddings",
    "layer_norm_epsilon": "layer_norm_eps",
    "rotary_emb_base": "rope_theta",
}
_OLDER_SUPPORTED = {
    "activation_function": "swiglu",
    "prenorm": False,
    "qkv_proj_bias": False,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "rotary_emb_fraction": 1.0,
    "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None,
    "rotary_scaling_factor": None,
    "use_rms_norm": False,
}
_NAMES = LayerNames(
    layer="layers.{}.",
    projections=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    mixed="self_attn.o_proj",
    mixed_norm="post_attention_layernorm",
    inner=("mlp.up_proj", "mlp.gate_proj"),
    outer="mlp.down_proj",
    outer_norm="post_mlp_layernorm",
)
_OLDER_NAMES = LayerNames(
    layer="encoder.layers.{}.",
    projections=("attn.Wqkv",),
    mixed="attn.out_proj",
    mixed_norm="norm1",
    inner=("mlp.fc11", "mlp.fc12"),
    outer="mlp.fc2",
    outer_norm="norm2",
)


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    if num_labels:
        raise ModelLoadError("config.json: nomic_bert supports task embed only, given score")
    config = _in_newer_words(config) if config.has("n_embd") else config
    config = config.with_defaults(
        rope_theta=1000.0, max_position_embeddings=2048, type_vocab_size=2
    )
    size, num_heads = config.size("hidden_size"), config.size("num_attention_heads")
    head_dim = config.size("head_dim", size // num_heads)
    norm = Norm(config.number("layer_norm_eps", 1e-12), is_centred=True, has_bias=True)
    rope = read_rope(config, head_dim)
    prefixes = ("", "nomic_bert.", "bert.")
    prefix = next(
        (each for each in prefixes if weights.has(f"{each}embeddings.word_embeddings.weight")), ""
    )
    b = EncoderBuilder(weights, plan, prefix)
    is_older = b.has("emb_ln.weight")  # transformers still saves this name
    rows = b.embed("embeddings.word_embeddings", config.size("vocab_size"), size, b.token_ids)
    types = b.input("token_types", [-1], ov.Type.i64)
    rows = ops.add(
        rows,
        b.embed("embeddings.token_type_embeddings", config.size("type_vocab_size"), size, types),
    )
    rows = b.norm(rows, "emb_ln" if is_older else "embeddings.LayerNorm", size, norm)
    shape = BertShape(
        hidden_size=size,
        num_heads=num_heads,
        head_dim=head_dim,
        inner_size=config.size("intermediate_size"),
        num_layers=config.size("num_hidden_layers"),
        norm=norm,
        is_gated=True,
        activation=read_activation(config),
        attention_bias=False,
        inner_bias=False,
        outer_bias=False,
    )
    names = _OLDER_NAMES if is_older else _NAMES
    rows = build_layers(b, rows, shape, names=names, angles=b.angles(rope))
    left_out = ("cls.", "lm_head.", f"{prefix}pooler.", f"{prefix}embeddings.position_ids")
    return b.encoder_model(
        rows,
        hidden_size=size,
        vocab_size=config.size("vocab_size"),
        max_positions=rope.max_positions,
        left_out=left_out,
    )


def _in_newer_words(config: HfConfig) -> HfConfig:
    for key, supported in _OLDER_SUPPORTED.items():
        if config.values.get(key, supported) != supported:
            raise config.refuse(key, str(supported))
    values = {
        newer: config.values[older] for older, newer in _OLDER_KEYS.items() if config.has(older)
    }
    return config.with_values(**values, hidden_act="silu", rope_scaling=None)
