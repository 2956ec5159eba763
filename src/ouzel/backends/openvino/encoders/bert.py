"""BERT: all-MiniLM, bge, e5, gte, jina-embeddings-v2, and cross encoders (ms-marco-MiniLM).

Reference: transformers, models/bert/modeling_bert.py. A norm follows each half of a layer.
jina-embeddings-v2 (huggingface.co/jinaai/jina-bert-implementation) has no positions, but distances
that lower the scores of attention (ALiBi), and gated feed-forward layers.
"""

from dataclasses import replace

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.bert import (
    BERT_NAMES,
    BertShape,
    EmbeddingSizes,
    LayerNames,
    build_layer,
    embed_tokens,
)
from ouzel.backends.openvino.graph.distances import compute_alibi, read_num_positions
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

LEFT_OUT = (
    "cls.",
    "lm_head.",
    "embeddings.position_ids",
    "pooler.",
    "bert.embeddings.position_ids",
    "bert.pooler.",
)

_JINA_NAMES = LayerNames(inner="mlp.gated_layers", outer="mlp.wo", outer_norm="mlp.layernorm")
_POSITIONS, _FEED_FORWARD = "position_embedding_type", "feed_forward_type"


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    has_alibi = config.text(_POSITIONS, "absolute") == "alibi"
    if has_alibi:
        config = config.with_values(**{_POSITIONS: "absolute"})
    shape, sizes = _read_shape(config), EmbeddingSizes.read(config)
    prefix = "bert." if weights.has("bert.embeddings.word_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    if has_alibi:
        bias = b.bias_by_distance(compute_alibi(shape.num_heads, read_num_positions(config)))
        rows = hidden_rows(b, shape, replace(sizes, num_positions=0), bias=bias)
    else:
        rows = hidden_rows(b, shape, sizes)
    if num_labels:
        first = ops.tanh(
            b.linear(b.pooled(rows), "pooler.dense", shape.hidden_size, shape.hidden_size)
        )
        rows = b.without_prefix().linear(first, "classifier", shape.hidden_size, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=shape.hidden_size,
        vocab_size=sizes.vocab_size,
        max_positions=sizes.num_positions,
        num_labels=num_labels,
        left_out=LEFT_OUT,
    )


def _read_shape(config: HfConfig) -> BertShape:
    kind = config.text(_FEED_FORWARD, "original")
    if kind not in ("original", "geglu"):
        raise config.refuse(_FEED_FORWARD, "original, geglu")
    return replace(BertShape.read(config), is_gated=kind == "geglu")


def hidden_rows(
    b: EncoderBuilder, shape: BertShape, sizes: EmbeddingSizes, *, bias: Node | None = None
) -> Node:
    """Computes the hidden rows of all tokens, [T, hidden_size]."""
    rows = embed_tokens(b, sizes, shape.norm)
    names = _JINA_NAMES if shape.is_gated else BERT_NAMES
    for layer in range(shape.num_layers):
        rows = build_layer(b, rows, f"encoder.layer.{layer}.", shape, names=names, bias=bias)
    return rows
