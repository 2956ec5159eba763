"""DistilBERT (msmarco-distilbert, distiluse) is BERT with fewer layers and without token types.

Reference: transformers, models/distilbert/modeling_distilbert.py. `sinusoidal_pos_embds` decides
only the initial positions of a training: the positions are a tensor of the checkpoint.
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
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    mixed="attention.out_lin",
    mixed_norm="sa_layer_norm",
    inner="ffn.lin1",
    outer="ffn.lin2",
    outer_norm="output_layer_norm",
)
_OWN_KEYS = {
    "dim": "hidden_size",
    "n_heads": "num_attention_heads",
    "n_layers": "num_hidden_layers",
    "hidden_dim": "intermediate_size",
    "activation": "hidden_act",
}
_LEFT_OUT = ("vocab_transform.", "vocab_layer_norm.", "vocab_projector.")


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    own = {other: config.values[key] for key, other in _OWN_KEYS.items() if config.has(key)}
    config = config.with_values(**own, layer_norm_eps=1e-12)
    config = config.with_defaults(max_position_embeddings=512)
    shape, sizes = BertShape.read(config), EmbeddingSizes.read(config, has_types=False)
    prefix = "distilbert." if weights.has("distilbert.embeddings.word_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    rows = embed_tokens(b, sizes, shape.norm)
    for layer in range(shape.num_layers):
        rows = build_layer(b, rows, f"transformer.layer.{layer}.", shape, names=_NAMES)
    if num_labels:
        size, head = shape.hidden_size, b.without_prefix()
        first = ops.relu(head.linear(b.pooled(rows), "pre_classifier", size, size))
        rows = head.linear(first, "classifier", size, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=shape.hidden_size,
        vocab_size=sizes.vocab_size,
        max_positions=sizes.num_positions,
        num_labels=num_labels,
        left_out=(*_LEFT_OUT, f"{prefix}embeddings.position_ids"),
    )
