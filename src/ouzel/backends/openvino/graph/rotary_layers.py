"""Builds the layers of BERTs with rotary positions: a norm follows each half of a layer.

Families differ in the names of tensors, in biases, and in feed-forward layers with or without
gates. Some checkpoints store the matrices of queries, keys and values as one, and the two matrices
of a gated layer as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.backends.openvino.graph.activations import Activation, activate
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node, get_output, merge_heads, split, split_heads
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rotation import Angles, rotate
from ouzel.backends.openvino.library import ops


@dataclass(frozen=True, kw_only=True)
class LayerNames:
    """Names of a layer's tensors, behind the layer's prefix."""

    layer: str  # prefix of a layer, with its number as {}
    # queries, keys and values; a single name: one matrix has all of them
    projections: tuple[str, ...]
    output: str
    mixer_norm: str
    # up and gate, or only up in a layer without gates; a single name in a gated layer: one matrix
    # has both
    inner: tuple[str, ...]
    down: str
    mlp_norm: str


@dataclass(frozen=True, kw_only=True)
class RotaryLayers:
    """The sizes, norms, biases and tensor names of all layers."""

    hidden_size: int
    num_heads: int
    head_dim: int
    inner_size: int
    norm: Norm
    activation: Activation
    angles: Angles
    names: LayerNames
    is_gated: bool = True
    attention_bias: bool = True
    inner_bias: bool = True
    down_bias: bool = True

    def build(self, b: EncoderBuilder, rows: Node, num_layers: int) -> Node:
        """Computes all layers on rows [T, hidden_size]; returns the same shape."""
        for layer in range(num_layers):
            rows = self._layer(b, rows, self.names.layer.format(layer))
        return rows

    def _layer(self, b: EncoderBuilder, rows: Node, prefix: str) -> Node:
        names, size, width = self.names, self.hidden_size, self.num_heads * self.head_dim
        query, key, value = _products(
            b,
            rows,
            [prefix + name for name in names.projections],
            (width,) * 3,
            has_bias=self.attention_bias,
        )
        query, key = (
            turned(each, self.num_heads, self.head_dim, self.angles) for each in (query, key)
        )
        mixed = b.linear(
            b.compute_attention((query, key, value), self.num_heads),
            prefix + names.output,
            width,
            size,
            has_bias=self.attention_bias,
        )
        rows = b.norm(ops.add(rows, mixed), prefix + names.mixer_norm, size, self.norm)
        outer = b.linear(
            self._inner_rows(b, rows, prefix),
            prefix + names.down,
            self.inner_size,
            size,
            has_bias=self.down_bias,
        )
        return b.norm(ops.add(rows, outer), prefix + names.mlp_norm, size, self.norm)

    def _inner_rows(self, b: EncoderBuilder, rows: Node, prefix: str) -> Node:
        sizes = (self.inner_size,) * (2 if self.is_gated else 1)
        inner = _products(
            b,
            rows,
            [prefix + name for name in self.names.inner],
            sizes,
            has_bias=self.inner_bias,
        )
        if not self.is_gated:
            return activate(inner[0], self.activation)
        plain, gated = inner
        return ops.multiply(activate(gated, self.activation), plain)


def turned(rows: Node, num_heads: int, head_dim: int, angles: Angles) -> Node:
    """Rotates the heads of [T, heads * head_dim] by their positions."""
    return merge_heads(rotate(split_heads(rows, num_heads, head_dim), angles, head_dim))


def _products(
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
