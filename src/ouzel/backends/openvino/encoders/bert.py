"""BERT: all-MiniLM, bge, e5, gte, jina-embeddings-v2, and cross encoders (ms-marco-MiniLM).

Reference: transformers, models/bert/modeling_bert.py. A norm follows each half of a layer.
jina-embeddings-v2 (huggingface.co/jinaai/jina-bert-implementation) has no positions, but distances
that lower the scores of attention (ALiBi), and gated feed-forward layers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node, split
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan
from ouzel.errors import ModelLoadError

LEFT_OUT = (
    "cls.",
    "lm_head.",
    "embeddings.position_ids",
    "pooler.",
    "bert.embeddings.position_ids",
    "bert.pooler.",
)


@dataclass(frozen=True, slots=True)
class BertShape:
    hidden_size: int
    num_heads: int
    inner_size: int
    num_layers: int
    norm: Norm
    activation: Activation
    has_alibi: bool  # scores of attention fall with the distance; there are no positions
    is_gated: bool  # the activation of one half of the inner values multiplies the other half

    @classmethod
    def read(cls, config: HfConfig) -> "BertShape":
        shape = cls(
            hidden_size=config.size("hidden_size"),
            num_heads=config.size("num_attention_heads"),
            inner_size=config.size("intermediate_size"),
            num_layers=config.size("num_hidden_layers"),
            norm=Norm(config.number("layer_norm_eps", 1e-12), is_centred=True, has_bias=True),
            activation=read_activation(config, default="gelu"),
            has_alibi=config.text("position_embedding_type", "absolute") == "alibi",
            is_gated=config.text("feed_forward_type", "original") == "geglu",
        )
        if shape.hidden_size % shape.num_heads:
            raise ModelLoadError(
                f"config.json: hidden_size {shape.hidden_size} is no multiple of "
                f"num_attention_heads {shape.num_heads}"
            )
        if not shape.has_alibi and config.text("position_embedding_type", "absolute") != "absolute":
            raise config.refuse("position_embedding_type", "absolute, alibi")
        if not shape.is_gated and config.text("feed_forward_type", "original") != "original":
            raise config.refuse("feed_forward_type", "original, geglu")
        if config.flag("is_decoder", False):
            raise config.refuse("is_decoder", "false")
        return shape


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    shape = BertShape.read(config)
    prefix = "bert." if weights.has("bert.embeddings.word_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    num_positions = config.size("max_position_embeddings")
    rows = hidden_rows(b, config, shape, num_positions)
    if num_labels:
        first = ops.tanh(
            b.linear(b.pooled(rows), "pooler.dense", shape.hidden_size, shape.hidden_size)
        )
        rows = b.without_prefix().linear(first, "classifier", shape.hidden_size, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=shape.hidden_size,
        vocab_size=config.size("vocab_size"),
        max_positions=num_positions,
        num_labels=num_labels,
        left_out=LEFT_OUT,
    )


def hidden_rows(b: EncoderBuilder, config: HfConfig, shape: BertShape, num_positions: int) -> Node:
    """Computes the hidden rows of all tokens, [T, hidden_size]."""
    size, num_types = shape.hidden_size, config.size("type_vocab_size", 2)
    rows = b.embed("embeddings.word_embeddings", config.size("vocab_size"), size, b.token_ids)
    types = b.input("token_types", [-1], ov.Type.i64)
    rows = ops.add(rows, b.embed("embeddings.token_type_embeddings", num_types, size, types))
    if not shape.has_alibi:
        places = b.input("position_ids", [-1], ov.Type.i64)
        name = "embeddings.position_embeddings"
        rows = ops.add(rows, b.embed(name, num_positions, size, places))
    rows = b.norm(rows, "embeddings.LayerNorm", size, shape.norm)
    for layer in range(shape.num_layers):
        rows = _layer(b, rows, f"encoder.layer.{layer}.", shape)
    return rows


def _layer(b: EncoderBuilder, rows: Node, prefix: str, shape: BertShape) -> Node:
    size = shape.hidden_size
    projections = [
        b.linear(rows, f"{prefix}attention.self.{name}", size, size)
        for name in ("query", "key", "value")
    ]
    mixed = b.linear(
        b.compute_attention(
            projections,
            shape.num_heads,
            slopes=compute_slopes(shape.num_heads) if shape.has_alibi else None,
        ),
        f"{prefix}attention.output.dense",
        size,
        size,
    )
    rows = b.norm(ops.add(rows, mixed), f"{prefix}attention.output.LayerNorm", size, shape.norm)
    if shape.is_gated:
        return _gated_half(b, rows, f"{prefix}mlp.", shape)
    inner = activate(
        b.linear(rows, f"{prefix}intermediate.dense", size, shape.inner_size), shape.activation
    )
    outer = b.linear(inner, f"{prefix}output.dense", shape.inner_size, size)
    return b.norm(ops.add(rows, outer), f"{prefix}output.LayerNorm", size, shape.norm)


def _gated_half(b: EncoderBuilder, rows: Node, prefix: str, shape: BertShape) -> Node:
    size, inner_size = shape.hidden_size, shape.inner_size
    both = b.linear(rows, f"{prefix}gated_layers", size, 2 * inner_size, has_bias=False)
    gate, plain = split(both, inner_size, inner_size)
    product = ops.multiply(activate(gate, shape.activation), plain)
    outer = b.linear(product, f"{prefix}wo", inner_size, size)
    return b.norm(ops.add(rows, outer), f"{prefix}layernorm", size, shape.norm)


def compute_slopes(num_heads: int) -> NDArray[np.float32]:
    """Returns how much the scores of each head fall with a distance of 1 (ALiBi).

    The slopes of a power of two of heads are a geometric sequence that ends at 2 ** -8. Further
    heads take every other slope of twice as many heads.
    """
    power = 1 << (num_heads.bit_length() - 1)
    slopes = 2.0 ** (-8.0 * np.arange(1, power + 1) / power)
    finer = 2.0 ** (-8.0 * np.arange(1, 2 * power + 1) / (2 * power))
    return np.concatenate([slopes, finer[::2][: num_heads - power]]).astype(np.float32)
