"""BERT: all-MiniLM, bge, e5, gte, and cross encoders (ms-marco-MiniLM).

Reference: transformers, models/bert/modeling_bert.py. A norm follows each half of a layer.
"""

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.bert import (
    BertShape,
    EmbeddingSizes,
    build_layer,
    embed_tokens,
)
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


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    shape, sizes = BertShape.read(config), EmbeddingSizes.read(config)
    prefix = "bert." if weights.has("bert.embeddings.word_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
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


def hidden_rows(b: EncoderBuilder, shape: BertShape, sizes: EmbeddingSizes) -> Node:
    """Computes the hidden rows of all tokens, [T, hidden_size]."""
    rows = embed_tokens(b, sizes, shape.norm)
    for layer in range(shape.num_layers):
        rows = build_layer(b, rows, f"encoder.layer.{layer}.", shape)
    return rows
