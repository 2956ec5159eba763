"""ELECTRA (ms-marco-electra, KoELECTRA) is BERT with smaller embeddings and another head.

Reference: transformers, models/electra/modeling_electra.py.
"""

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.bert import (
    BertShape,
    EmbeddingSizes,
    build_layers,
    embed_tokens,
)
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

_LEFT_OUT = ("discriminator_predictions.", "generator_predictions.", "generator_lm_head.")


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    config = config.with_defaults(embedding_size=128, max_position_embeddings=512)
    shape, sizes = BertShape.read(config), EmbeddingSizes.read(config, "embedding_size")
    size = shape.hidden_size
    prefix = "electra." if weights.has("electra.embeddings.word_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    rows = embed_tokens(b, sizes, shape.norm)
    if sizes.row_size != size:
        rows = b.linear(rows, "embeddings_project", sizes.row_size, size)
    rows = build_layers(b, rows, shape)
    if num_labels:
        head = b.without_prefix()
        first = ops.gelu(head.linear(b.pooled(rows), "classifier.dense", size, size), "erf")
        rows = head.linear(first, "classifier.out_proj", size, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=size,
        vocab_size=sizes.vocab_size,
        max_positions=sizes.num_positions,
        num_labels=num_labels,
        left_out=(*_LEFT_OUT, f"{prefix}embeddings.position_ids"),
    )
