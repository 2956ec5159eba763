"""Builds the parts that BERT shares with its kin: embeddings, and layers whose halves end in norms.

The families differ in the names of their tensors and keys, in their heads, in biases and gates, and
in their positions. Some checkpoints store the matrices of queries, keys and values as one, and the
two matrices of a gated layer as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node, get_output, split
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rotation import Angles, rotate_rows
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
    # a feed-forward layer has two kinds of inner values: gates, and the values they multiply
    is_gated: bool = False
    head_dim: int = 0  # 0: the heads divide the hidden size
    attention_bias: bool = True
    inner_bias: bool = True
    outer_bias: bool = True

    @property
    def mixed_size(self) -> int:
        """Returns the columns of the values that attention has mixed."""
        return self.num_heads * self.head_dim or self.hidden_size

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
    """The names of a layer's tensors, behind the prefix of the layer."""

    layer: str = "encoder.layer.{}."  # prefix of a layer, with its number as {}
    # queries, keys and values; a single name: one matrix has all of them
    projections: tuple[str, ...] = (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
    )
    mixed: str = "attention.output.dense"
    mixed_norm: str = "attention.output.LayerNorm"
    # values and their gates, or only values without gates; a single name in a gated layer: one
    # matrix has both
    inner: tuple[str, ...] = ("intermediate.dense",)
    has_gates_first: bool = False  # the gates stand before their values
    outer: str = "output.dense"
    outer_norm: str = "output.LayerNorm"


BERT_NAMES = LayerNames()


def build_layers(
    b: EncoderBuilder,
    rows: Node,
    shape: BertShape,
    *,
    names: LayerNames = BERT_NAMES,
    bias: Node | None = None,
    angles: Angles | None = None,
) -> Node:
    """Builds all layers on rows [T, hidden_size]; returns the same shape."""
    for layer in range(shape.num_layers):
        prefix = names.layer.format(layer)
        rows = build_layer(b, rows, prefix, shape, names=names, bias=bias, angles=angles)
    return rows


def build_layer(
    b: EncoderBuilder,
    rows: Node,
    prefix: str,
    shape: BertShape,
    *,
    names: LayerNames = BERT_NAMES,
    bias: Node | None = None,
    angles: Angles | None = None,
) -> Node:
    """Builds the attention and the feed-forward half of a layer, each with its norm.

    The `bias` is added to the products of queries and keys; queries and keys are rotated by the
    `angles`.
    """
    stored = [prefix + name for name in names.projections]
    sizes = (shape.mixed_size,) * 3
    query, key, value = _multiply(b, rows, stored, sizes, has_bias=shape.attention_bias)
    if angles is not None:
        num_heads, head_dim = shape.num_heads, shape.mixed_size // shape.num_heads
        query, key = (rotate_rows(each, num_heads, head_dim, angles) for each in (query, key))
    mixed = b.compute_attention((query, key, value), shape.num_heads, bias=bias)
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
    size, inner_size = shape.hidden_size, shape.inner_size
    mixed = b.linear(
        mixed, prefix + names.mixed, shape.mixed_size, size, has_bias=shape.attention_bias
    )
    rows = b.norm(ops.add(rows, mixed), prefix + names.mixed_norm, size, shape.norm)
    inner = _compute_inner(b, rows, prefix, shape, names)
    outer = b.linear(inner, prefix + names.outer, inner_size, size, has_bias=shape.outer_bias)
    return b.norm(ops.add(rows, outer), prefix + names.outer_norm, size, shape.norm)


def _compute_inner(
    b: EncoderBuilder, rows: Node, prefix: str, shape: BertShape, names: LayerNames
) -> Node:
    sizes = (shape.inner_size,) * (2 if shape.is_gated else 1)
    stored = [prefix + name for name in names.inner]
    inner = _multiply(b, rows, stored, sizes, has_bias=shape.inner_bias)
    if not shape.is_gated:
        return activate(inner[0], shape.activation)
    values, gates = inner[::-1] if names.has_gates_first else inner
    return ops.multiply(activate(gates, shape.activation), values)


def _multiply(
    b: EncoderBuilder, rows: Node, names: Sequence[str], sizes: Sequence[int], *, has_bias: bool
) -> list[Node]:
    """Multiplies the rows by a matrix for each size, or by one matrix that has all of them."""
    num_columns = get_output(rows).get_partial_shape()[1].get_length()
    if len(names) == len(sizes):
        return [
            b.linear(rows, name, num_columns, size, has_bias=has_bias)
            for name, size in zip(names, sizes, strict=True)
        ]
    [name] = names
    return split(b.linear(rows, name, num_columns, sum(sizes), has_bias=has_bias), *sizes)
