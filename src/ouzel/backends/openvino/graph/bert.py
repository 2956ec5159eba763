"""Builds the parts that BERT shares with its kin: embeddings, and layers whose halves end in norms.

The families differ in the names of their tensors and keys, in their heads, and in their positions.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node, split
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.library import ops, ov
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError


@dataclass(frozen=True, slots=True)
class BertShape:
    hidden_size: int
    num_heads: int
    inner_size: int
    num_layers: int
    norm: Norm
    activation: Activation
    # the activation of the inner values' first half multiplies their other half
    is_gated: bool = False

    @classmethod
    def read(cls, config: HfConfig) -> "BertShape":
        """Reads the keys of BERT. Raises ModelLoadError for a value that is not supported."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSizes:
    row_size: int  # the numbers in a row of each table
    vocab_size: int
    num_positions: int  # 0: the family has no embeddings of positions
    num_types: int = 0  # the types of tokens; 0: the family has no types

    @classmethod
    def read(
        cls, config: HfConfig, size_key: str = "hidden_size", *, has_types: bool = True
    ) -> "EmbeddingSizes":
        """Reads the sizes; `size_key` is the key of the numbers in a row."""
        return cls(
            row_size=config.size(size_key),
            vocab_size=config.size("vocab_size"),
            num_positions=config.size("max_position_embeddings"),
            num_types=config.size("type_vocab_size", 2) if has_types else 0,
        )


def embed_tokens(b: EncoderBuilder, sizes: EmbeddingSizes, norm: Norm) -> Node:
    """Adds the embeddings of each token, its type and its position; returns the norms of the sums,
    [T, row_size].
    """
    size = sizes.row_size
    rows = b.embed("embeddings.word_embeddings", sizes.vocab_size, size, b.token_ids)
    if sizes.num_types:
        types = b.input("token_types", [-1], ov.Type.i64)
        of_types = b.embed("embeddings.token_type_embeddings", sizes.num_types, size, types)
        rows = ops.add(rows, of_types)
    if sizes.num_positions:
        places = b.input("position_ids", [-1], ov.Type.i64)
        table = "embeddings.position_embeddings"
        rows = ops.add(rows, b.embed(table, sizes.num_positions, size, places))
    return b.norm(rows, "embeddings.LayerNorm", size, norm)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNames:
    """The names of a layer's tensors, without the prefix of the layer."""

    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    mixed: str = "attention.output.dense"
    mixed_norm: str = "attention.output.LayerNorm"
    inner: str = "intermediate.dense"
    outer: str = "output.dense"
    outer_norm: str = "output.LayerNorm"


BERT_NAMES = LayerNames()


def build_layer(
    b: EncoderBuilder,
    rows: Node,
    prefix: str,
    shape: BertShape,
    *,
    names: LayerNames = BERT_NAMES,
    bias: Node | None = None,
) -> Node:
    """Builds the attention and the feed-forward half of a layer, each with its norm.

    The `bias` is added to the products of queries and keys.
    """
    size = shape.hidden_size
    projections = [
        b.linear(rows, prefix + name, size, size) for name in (names.query, names.key, names.value)
    ]
    mixed = b.compute_attention(projections, shape.num_heads, bias=bias)
    return finish_layer(b, rows, mixed, prefix, shape, names=names)


def finish_layer(
    b: EncoderBuilder,
    rows: Node,
    mixed: Node,
    prefix: str,
    shape: BertShape,
    *,
    names: LayerNames = BERT_NAMES,
) -> Node:
    """Builds a layer behind its attention; `mixed` are the values that attention has mixed."""
    size = shape.hidden_size
    mixed = b.linear(mixed, prefix + names.mixed, size, size)
    rows = b.norm(ops.add(rows, mixed), prefix + names.mixed_norm, size, shape.norm)
    inner = _compute_inner(b, rows, prefix + names.inner, shape)
    outer = b.linear(inner, prefix + names.outer, shape.inner_size, size)
    return b.norm(ops.add(rows, outer), prefix + names.outer_norm, size, shape.norm)


def _compute_inner(b: EncoderBuilder, rows: Node, name: str, shape: BertShape) -> Node:
    size, inner_size = shape.hidden_size, shape.inner_size
    if not shape.is_gated:
        return activate(b.linear(rows, name, size, inner_size), shape.activation)
    both = b.linear(rows, name, size, 2 * inner_size, has_bias=False)
    gate, plain = split(both, inner_size, inner_size)
    return ops.multiply(activate(gate, shape.activation), plain)
