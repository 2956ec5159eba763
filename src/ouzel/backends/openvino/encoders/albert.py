"""ALBERT (paraphrase-albert) is BERT with shared layers and smaller embeddings.

Reference: transformers, models/albert/modeling_albert.py.
"""

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.bert import (
    BertShape,
    EmbeddingSizes,
    LayerNames,
    build_layer,
    embed_tokens,
)
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

_NAMES = LayerNames(
    projections=("attention.query", "attention.key", "attention.value"),
    mixed="attention.dense",
    mixed_norm="attention.LayerNorm",
    inner=("ffn",),
    outer="ffn_output",
    outer_norm="full_layer_layer_norm",
)
_LEFT_OUT = ("predictions.", "sop_classifier.", "pooler.", "albert.pooler.")


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    config = config.with_defaults(
        embedding_size=128, max_position_embeddings=512, hidden_act="gelu_new"
    )
    shape, sizes = BertShape.read(config), EmbeddingSizes.read(config, "embedding_size")
    size = shape.hidden_size
    prefix = "albert." if weights.has("albert.embeddings.word_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    rows = embed_tokens(b, sizes, shape.norm)
    rows = b.linear(rows, "encoder.embedding_hidden_mapping_in", sizes.row_size, size)
    for name in _layer_prefixes(config, shape.num_layers):
        rows = build_layer(b, rows, name, shape, names=_NAMES)
    if num_labels:
        first = ops.tanh(b.linear(b.pooled(rows), "pooler", size, size))
        rows = b.without_prefix().linear(first, "classifier", size, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=size,
        vocab_size=sizes.vocab_size,
        max_positions=sizes.num_positions,
        num_labels=num_labels,
        left_out=(*_LEFT_OUT, f"{prefix}embeddings.position_ids"),
    )


def _layer_prefixes(config: HfConfig, num_layers: int) -> list[str]:
    """Returns the prefix of each layer's tensors: a group of layers repeats its few layers."""
    num_groups = config.size("num_hidden_groups", 1)
    num_inner = config.size("inner_group_num", 1)
    if num_groups > num_layers:
        raise config.refuse("num_hidden_groups", f"<= num_hidden_layers {num_layers}")
    groups = [int(layer / (num_layers / num_groups)) for layer in range(num_layers)]
    return [
        f"encoder.albert_layer_groups.{group}.albert_layers.{inner}."
        for group in groups
        for inner in range(num_inner)
    ]
