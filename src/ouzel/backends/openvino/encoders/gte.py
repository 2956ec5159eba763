"""GTE (gte-multilingual-base, its reranker, gte-v1.5, arctic-embed-m-v2.0): BERT with rotary
positions and gated layers.

References: transformers, models/gte/modeling_gte.py; Alibaba-NLP/new-impl, modeling.py, whose
checkpoints have the type `new`, fused matrices, and positions scaled by NTK
(https://kexue.fm/archives/9706).
"""

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.bert import BertShape, LayerNames, build_layers
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import read_rope
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.context_length import rope_type
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

_SUPPORTED = {
    "position_embedding_type": "rope",
    "layer_norm_type": "layer_norm",
    "logn_attention_scale": False,
}
_LEFT_OUT = ("lm_head.", "pooler.", "new.pooler.", "gte.pooler.")
_DEFAULT_THETA = {"gte": 160_000.0, "new": 10_000.0}
_SEPARATE = ("q_proj", "k_proj", "v_proj")
_NAMES = LayerNames(
    layer="layers.{}.",
    projections=tuple(f"self_attn.{name}" for name in _SEPARATE),
    mixed="self_attn.o_proj",
    mixed_norm="post_attention_layernorm",
    inner=("mlp.up_proj", "mlp.gate_proj"),
    outer="mlp.down_proj",
    outer_norm="post_mlp_layernorm",
)


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    config = _with_scaled_positions(config)
    size, num_heads = config.size("hidden_size"), config.size("num_attention_heads")
    if size % num_heads:
        raise config.refuse("num_attention_heads", f"a divisor of hidden_size, {size}")
    norm = Norm(config.number("layer_norm_eps", 1e-12), is_centred=True, has_bias=True)
    rope = read_rope(config, size // num_heads)
    prefixes = ("", "new.", "gte.")
    prefix = next(
        (each for each in prefixes if weights.has(f"{each}embeddings.word_embeddings.weight")), ""
    )
    b = EncoderBuilder(weights, plan, prefix)
    rows = b.norm(_embedded(b, config, size), "embeddings.LayerNorm", size, norm)
    shape = BertShape(
        hidden_size=size,
        num_heads=num_heads,
        inner_size=config.size("intermediate_size"),
        num_layers=config.size("num_hidden_layers"),
        norm=norm,
        is_gated=True,
        activation=read_activation(config, default="gelu"),
        inner_bias=False,
    )
    names = _find_names(b)
    rows = build_layers(b, rows, shape, names=names, angles=b.angles(rope))
    if num_labels:
        first = ops.tanh(b.linear(b.pooled(rows), "pooler.dense", size, size))
        rows = b.without_prefix().linear(first, "classifier", size, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=size,
        vocab_size=config.size("vocab_size"),
        max_positions=rope.max_positions,
        num_labels=num_labels,
        # gte-multilingual-base has a head that weighs tokens for sparse vectors.
        left_out=_LEFT_OUT if num_labels else (*_LEFT_OUT, "classifier."),
    )


def _embedded(b: EncoderBuilder, config: HfConfig, size: int) -> Node:
    rows = b.embed("embeddings.word_embeddings", config.size("vocab_size"), size, b.token_ids)
    if config.integer("type_vocab_size", 1) == 0:
        return rows
    num_types = config.size("type_vocab_size", 1)
    types = b.input("token_types", [-1], ov.Type.i64)
    if num_types == 1:  # both texts of a pair have the only type
        types = ops.multiply(types, integers(0))
    return ops.add(rows, b.embed("embeddings.token_type_embeddings", num_types, size, types))


def _with_scaled_positions(config: HfConfig) -> HfConfig:
    """Checks the keys of older checkpoints, and writes NTK's scaling as rotary parameters.

    NTK multiplies the base by the factor, and divides all frequencies by the factor to the power of
    2 / head_dim.
    """
    for key, supported in _SUPPORTED.items():
        if config.values.get(key, supported) != supported:
            raise config.refuse(key, str(supported))
    config = config.with_defaults(
        rope_theta=_DEFAULT_THETA[config.model_type], max_position_embeddings=8192
    )
    scaling = config.section("rope_scaling")
    if scaling is None or rope_type(scaling) != "ntk":
        return config
    if scaling.has("mixed_b"):
        raise scaling.refuse("mixed_b", "null")
    factor = scaling.number("factor")
    if factor < 1:
        raise scaling.refuse("factor", "1 or more")
    head_dim = config.size("hidden_size") / config.size("num_attention_heads")
    parameters = {
        "rope_type": "linear",
        "factor": factor ** (2 / head_dim),
        "rope_theta": config.number("rope_theta") * factor,
    }
    return config.with_values(rope_parameters=parameters, rope_scaling=None)


def _find_names(b: EncoderBuilder) -> LayerNames:
    """Returns the names of transformers, or the names of Alibaba's own code."""
    if b.has("layers.0.self_attn.q_proj.weight"):
        return _NAMES
    is_fused = b.has("encoder.layer.0.attention.qkv_proj.weight")
    projections = ("qkv_proj",) if is_fused else _SEPARATE
    return LayerNames(
        layer="encoder.layer.{}.",
        projections=tuple(f"attention.{name}" for name in projections),
        mixed="attention.o_proj",
        mixed_norm="attn_ln",
        inner=("mlp.up_gate_proj",),
        outer="mlp.down_proj",
        outer_norm="mlp_ln",
    )
