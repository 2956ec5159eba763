"""RoBERTa: BERT with another head, and positions that count from the padding token's id plus one.

Reference: transformers, models/roberta/modeling_roberta.py.
"""

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.encoders.bert import LEFT_OUT, hidden_rows
from ouzel.backends.openvino.graph.bert import BertShape, EmbeddingSizes
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    config = config.with_defaults(pad_token_id=1)
    shape, sizes = BertShape.read(config), EmbeddingSizes.read(config)
    prefix = "roberta." if weights.has("roberta.embeddings.word_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    num_positions = sizes.num_positions
    padding_id = config.integer("pad_token_id")
    if not 0 <= padding_id < num_positions - 1:
        raise config.refuse(
            "pad_token_id", f"0 to {num_positions - 2}, as positions begin at pad_token_id + 1"
        )
    rows = hidden_rows(b, shape, sizes)
    if num_labels:
        rows = score_rows(b, rows, shape.hidden_size, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=shape.hidden_size,
        vocab_size=sizes.vocab_size,
        max_positions=num_positions - padding_id - 1,
        num_labels=num_labels,
        padding_id=padding_id,
        left_out=(*LEFT_OUT, "roberta.embeddings.position_ids", "roberta.pooler."),
    )


def score_rows(b: EncoderBuilder, rows: Node, size: int, num_labels: int) -> Node:
    """Builds the head that computes the logits of each text, [B, num_labels]."""
    head = b.without_prefix()
    first = ops.tanh(head.linear(b.pooled(rows), "classifier.dense", size, size))
    return head.linear(first, "classifier.out_proj", size, num_labels)
