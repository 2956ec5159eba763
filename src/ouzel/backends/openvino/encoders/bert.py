"""BERT: all-MiniLM, bge, e5, gte, and cross encoders (ms-marco-MiniLM).

Reference: transformers, models/bert/modeling_bert.py. A norm follows each half of a layer.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node
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

    @classmethod
    def read(cls, config: HfConfig) -> "BertShape":
        shape = cls(
            hidden_size=config.size("hidden_size"),
            num_heads=config.size("num_attention_heads"),
            inner_size=config.size("intermediate_size"),
            num_layers=config.size("num_hidden_layers"),
            norm=Norm(config.number("layer_norm_eps", 1e-12), is_centred=True, has_bias=True),
            activation=read_activation(config, default="gelu"),
        )
        if shape.hidden_size % shape.num_heads:
            raise ModelLoadError(
                f"config.json: hidden_size {shape.hidden_size} is no multiple of "
                f"num_attention_heads {shape.num_heads}"
            )
        if config.text("position_embedding_type", "absolute") != "absolute":
            raise config.refuse("position_embedding_type", "absolute")
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
    positions = b.input("position_ids", [-1], ov.Type.i64)
    rows = ops.add(rows, b.embed("embeddings.position_embeddings", num_positions, size, positions))
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
    return finish_layer(b, rows, b.compute_attention(projections, shape.num_heads), prefix, shape)


def finish_layer(b: EncoderBuilder, rows: Node, mixed: Node, prefix: str, shape: BertShape) -> Node:
    """Computes a layer behind its attention; `mixed` are the values that attention has mixed."""
    size = shape.hidden_size
    output = b.linear(mixed, f"{prefix}attention.output.dense", size, size)
    rows = b.norm(ops.add(rows, output), f"{prefix}attention.output.LayerNorm", size, shape.norm)
    inner = activate(
        b.linear(rows, f"{prefix}intermediate.dense", size, shape.inner_size), shape.activation
    )
    outer = b.linear(inner, f"{prefix}output.dense", shape.inner_size, size)
    return b.norm(ops.add(rows, outer), f"{prefix}output.LayerNorm", size, shape.norm)
