"""EuroBERT has the layers of Llama, without a causal mask.

Reference: transformers, models/eurobert/modeling_eurobert.py. A norm stands before each half of a
layer. Several heads of queries may share a head of keys and values.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.encoder_model import EncoderModel, ScorePooling
from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import read_rope
from ouzel.backends.openvino.graph.rotation import Angles, rotate_rows
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

# "late": the head scores every token, and the scores are averaged
_POOLINGS: dict[str, ScorePooling] = {"late": "mean", "mean": "mean", "bos": "cls"}


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    config = config.with_defaults(max_position_embeddings=8192)
    size, num_heads = config.size("hidden_size"), config.size("num_attention_heads")
    head_dim = config.size("head_dim", max(1, size // num_heads))
    rope = read_rope(config, head_dim)
    prefix = "model." if weights.has("model.embed_tokens.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    shape = _Shape(
        size=size,
        num_heads=num_heads,
        num_kv_heads=config.size("num_key_value_heads", num_heads),
        head_dim=head_dim,
        inner_size=config.size("intermediate_size"),
        norm=Norm(config.number("rms_norm_eps", 1e-5)),
        activation=read_activation(config),
        angles=b.angles(rope),
        attention_bias=config.flag("attention_bias", False),
        mlp_bias=config.flag("mlp_bias", False),
    )
    if num_heads % shape.num_kv_heads:
        raise config.refuse("num_key_value_heads", f"a divisor of {num_heads}")
    pooling = config.text("classifier_pooling", config.text("clf_pooling", "late"))
    if pooling not in _POOLINGS:
        raise config.refuse("classifier_pooling", ", ".join(_POOLINGS))
    rows = b.embed("embed_tokens", config.size("vocab_size"), size, b.token_ids)
    for layer in range(config.size("num_hidden_layers")):
        rows = _layer(b, rows, f"layers.{layer}.", shape)
    rows = b.norm(rows, "norm", size, shape.norm)
    if num_labels:
        rows = _scores(b, rows, size, num_labels, is_late=pooling == "late")
    return b.encoder_model(
        rows,
        hidden_size=size,
        vocab_size=config.size("vocab_size"),
        max_positions=rope.max_positions,
        num_labels=num_labels,
        score_pooling=_POOLINGS[pooling],
        left_out=("lm_head.",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    inner_size: int
    norm: Norm
    activation: Activation
    angles: Angles
    attention_bias: bool
    mlp_bias: bool


def _layer(b: EncoderBuilder, rows: Node, prefix: str, shape: _Shape) -> Node:
    size, inner, has_bias = shape.size, shape.inner_size, shape.mlp_bias
    before = b.norm(rows, f"{prefix}input_layernorm", size, shape.norm)
    mixed = b.linear(
        _mixed(b, before, f"{prefix}self_attn.", shape),
        f"{prefix}self_attn.o_proj",
        shape.num_heads * shape.head_dim,
        size,
        has_bias=shape.attention_bias,
    )
    rows = ops.add(rows, mixed)
    before = b.norm(rows, f"{prefix}post_attention_layernorm", size, shape.norm)
    gate, up = (
        b.linear(before, f"{prefix}mlp.{name}_proj", size, inner, has_bias=has_bias)
        for name in ("gate", "up")
    )
    product = ops.multiply(activate(gate, shape.activation), up)
    return ops.add(
        rows, b.linear(product, f"{prefix}mlp.down_proj", inner, size, has_bias=has_bias)
    )


def _mixed(b: EncoderBuilder, rows: Node, prefix: str, shape: _Shape) -> Node:
    counts = {"q": shape.num_heads, "k": shape.num_kv_heads, "v": shape.num_kv_heads}
    query, key, value = (
        b.linear(
            rows,
            f"{prefix}{name}_proj",
            shape.size,
            count * shape.head_dim,
            has_bias=shape.attention_bias,
        )
        for name, count in counts.items()
    )
    query = rotate_rows(query, shape.num_heads, shape.head_dim, shape.angles)
    key = rotate_rows(key, shape.num_kv_heads, shape.head_dim, shape.angles)
    return b.compute_attention((query, key, value), shape.num_heads)


def _scores(b: EncoderBuilder, rows: Node, size: int, num_labels: int, *, is_late: bool) -> Node:
    head = b.without_prefix()
    inner = head.linear(rows if is_late else b.pooled(rows), "dense", size, size)
    scores = head.linear(activate(inner, "gelu"), "classifier", size, num_labels)
    return b.pooled(scores) if is_late else scores
