"""DistilBERT (msmarco-distilbert, distiluse) is BERT with fewer layers and without token types.

Reference: transformers, models/distilbert/modeling_distilbert.py. `sinusoidal_pos_embds` decides
only the initial positions of a training: the positions are a tensor of the checkpoint.
"""

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.bert import (
    BertShape,
    EmbeddingSizes,
    LayerNames,
    build_layers,
    embed_tokens,
)
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

_NAMES = LayerNames(
    layer="transformer.layer.{}.",
    projections=("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    mixed="attention.out_lin",
    mixed_norm="sa_layer_norm",
    inner=("ffn.lin1",),
    outer="ffn.lin2",
    outer_norm="output_layer_norm",
)
_LEFT_OUT = ("vocab_transform.", "vocab_layer_norm.", "vocab_projector.")


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    config = config.with_defaults(max_position_embeddings=512)
    shape = _read_shape(config)
    config = config.with_values(hidden_size=shape.hidden_size)
    sizes = EmbeddingSizes.read(config, has_types=False)
    prefix = "distilbert." if weights.has("distilbert.embeddings.word_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    rows = embed_tokens(b, sizes, shape.norm)
    rows = build_layers(b, rows, shape, names=_NAMES)
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


def _read_shape(config: HfConfig) -> BertShape:
    """Reads the own keys of the family; transformers takes three keys of BERT for them, too."""
    size = config.size("dim", config.size("hidden_size", 768))
    num_heads = config.size("n_heads", config.size("num_attention_heads", 12))
    if size % num_heads:
        raise config.refuse("n_heads", f"divisors of dim {size}")
    return BertShape(
        hidden_size=size,
        num_heads=num_heads,
        inner_size=config.size("hidden_dim", 3072),
        num_layers=config.size("n_layers", config.size("num_hidden_layers", 6)),
        norm=Norm(1e-12, is_centred=True, has_bias=True),
        activation=read_activation(config, "activation", "gelu"),
    )
