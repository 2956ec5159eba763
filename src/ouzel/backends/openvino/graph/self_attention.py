"""Builds the self-attention of most families: projections, optional norms of queries and keys,
rotation, output.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.attention import cache_inputs, paged_attention
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.distances import compute_slopes
from ouzel.backends.openvino.graph.key_scales import mark_rows
from ouzel.backends.openvino.graph.nodes import Node, integers, merge_heads, split, split_heads
from ouzel.backends.openvino.graph.norms import Norm, normalise
from ouzel.backends.openvino.graph.rotation import Angles, rotate
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

# The kinds of norms of queries and keys: over all heads of a row together; over each head, with the
# same weights or with its own; over each head after its rotation; over each head without weights.
QkNorm = Literal["row", "head", "own head", "turned head", "bare head"]

# Where gates of the results of heads come from: `q_proj` has a gate for each dimension behind the
# query of a head; `gate_proj` has one for each head, or for each dimension of each head.
Gate = Literal["in query", "head", "dimension"]


@dataclass(frozen=True, kw_only=True)
class AttentionShape:
    """The sizes and switches of one kind of layer."""

    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    norm: Norm  # norm of queries and keys
    scale: float  # factor of the products of queries and keys
    input_size: int = 0  # columns of the rows that queries, keys and values take; 0: hidden_size
    softcap: float = 0.0  # scaled products become softcap * tanh(product / softcap); 0: they stay
    qkv_bias: bool = False
    key_has_bias: bool = True  # False: with `qkv_bias` only queries and values have biases
    output_bias: bool = False
    qk_norm: QkNorm | None = None
    gate: Gate | None = None
    name: str = "self_attn"  # part of the names of all tensors
    is_fused: bool = False  # queries, keys and values are one tensor
    fused_name: str = "qkv_proj"
    is_fused_by_head: bool = False  # that tensor has query, key and value of one head after another
    num_paired_dims: int = 0  # rotary dimensions whose coordinates lie side by side, not in halves
    output_name: str = "o_proj"
    qk_norm_names: tuple[str, str] = ("q_norm", "k_norm")
    # limit of queries, keys and values, which are clipped after their norms
    qkv_limit: float | None = None
    # Each head has a logit that takes a share of the attention and adds nothing.
    has_sinks: bool = False
    # The scores of each head fall with the distance, by slopes of this family's rule (ALiBi).
    has_slopes: bool = False

    @property
    def is_only_turned(self) -> bool:
        """Tells whether only a rotation stands between the products of queries and keys and the
        attention.
        """
        is_changed = self.gate == "in query" or self.is_fused or self.qk_norm
        return not is_changed and self.qkv_limit is None

    @classmethod
    def read(cls, config: HfConfig, norm: Norm) -> "AttentionShape":
        """Reads the keys that all families write the same way.

        `dataclasses.replace` adds the settings of a family.
        """
        hidden_size, num_heads = config.size("hidden_size"), config.size("num_attention_heads")
        head_dim = config.size("head_dim", hidden_size // num_heads)
        num_kv_heads = config.size("num_key_value_heads", num_heads)
        if num_heads % num_kv_heads:
            raise ModelLoadError(
                f"{config.source}: num_attention_heads {num_heads} is no multiple of "
                f"num_key_value_heads {num_kv_heads}"
            )
        return cls(
            hidden_size=hidden_size,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            norm=norm,
            scale=head_dim**-0.5,
        )


def self_attention(
    b: Builder,
    rows: Node,
    prefix: str,
    layer: int,
    shape: AttentionShape,
    *,
    angles: Angles | None,
    query_scale: Node | None = None,
    sliding_window: int = 0,
) -> Node:
    """Computes self-attention; takes and returns [T, hidden_size].

    Without `angles` the layer has no positions. `query_scale` is [T, 1, 1].
    """
    query, key, value = project(b, rows, prefix, shape)
    cache = cache_inputs(b.graph, layer)
    if shape.is_only_turned:
        mark_rows(query, key, cache.key, 0 if angles is None else angles.num_dims)
    gate = None
    if shape.gate == "in query":
        gated_heads = split_heads(query, shape.num_heads, 2 * shape.head_dim)
        query, gate = (
            merge_heads(heads) for heads in split(gated_heads, shape.head_dim, shape.head_dim)
        )
    elif shape.gate:
        num_gates = shape.num_heads * (shape.head_dim if shape.gate == "dimension" else 1)
        gate = b.linear(rows, prefix + "gate_proj", shape.hidden_size, num_gates)
    query_norm, key_norm = shape.qk_norm_names
    query = in_heads(b, query, prefix + query_norm, shape.num_heads, shape)
    key = in_heads(b, key, prefix + key_norm, shape.num_kv_heads, shape)
    if (limit := shape.qkv_limit) is not None:
        query, key, value = (ops.clamp(each, -limit, limit) for each in (query, key, value))
    if angles is not None:
        query, key = (rotate(heads, angles, shape.head_dim) for heads in (query, key))
    if shape.qk_norm == "turned head":
        query = b.norm(query, prefix + query_norm, shape.head_dim, shape.norm)
        key = b.norm(key, prefix + key_norm, shape.head_dim, shape.norm)
    if query_scale is not None:
        query = ops.multiply(query, query_scale)
    sinks, slopes = numbers_by_head(b, prefix, shape)
    attended = paged_attention(
        b.graph,
        query,
        key,
        value,
        cache,
        num_kv_heads=shape.num_kv_heads,
        key_dim=shape.head_dim,
        value_dim=shape.head_dim,
        scale=shape.scale,
        softcap=shape.softcap,
        sliding_window=sliding_window,
        sinks=sinks,
        slopes=slopes,
    )
    if gate is not None:
        attended = gated(attended, ops.sigmoid(gate), shape)
    num_columns = shape.num_heads * shape.head_dim
    return b.linear(
        attended,
        prefix + shape.output_name,
        num_columns,
        shape.hidden_size,
        has_bias=shape.output_bias,
    )


def numbers_by_head(
    b: Builder, prefix: str, shape: AttentionShape
) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None]:
    """Returns the sinks and the slopes of the heads; None stands for numbers that a layer lacks."""
    return (
        b.array(prefix + "sinks", shape.num_heads) if shape.has_sinks else None,
        compute_slopes(shape.num_heads) if shape.has_slopes else None,
    )


def gated(attended: Node, gate: Node, shape: AttentionShape) -> Node:
    """Multiplies rows [T, heads * head_dim] by a gate for each of their columns, or each head."""
    if shape.gate != "head":
        return ops.multiply(attended, gate)
    heads = split_heads(attended, shape.num_heads, shape.head_dim)
    return merge_heads(ops.multiply(heads, ops.unsqueeze(gate, integers(2))))


def project(b: Builder, rows: Node, prefix: str, shape: AttentionShape) -> list[Node]:
    """Returns queries, keys and values, each [T, heads * head_dim].

    With gates the queries are twice as wide.
    """
    heads = (shape.num_heads, shape.num_kv_heads, shape.num_kv_heads)
    sizes = [num_heads * shape.head_dim for num_heads in heads]
    if shape.gate == "in query":
        assert not (shape.is_fused or shape.num_paired_dims)
        sizes[0] *= 2
    biases = [shape.qkv_bias, shape.qkv_bias and shape.key_has_bias, shape.qkv_bias]
    orders = [head_order(num_heads, shape) for num_heads in heads[:2]] + [None]
    num_columns = shape.input_size or shape.hidden_size
    if shape.is_fused:
        assert not shape.num_paired_dims
        return b.linears(
            rows,
            prefix + shape.fused_name,
            num_columns,
            sizes,
            has_bias=shape.qkv_bias,
            row_order=fused_order(shape),
        )
    return [
        b.linear(rows, prefix + name, num_columns, size, has_bias=has_bias, row_order=order)
        for name, size, has_bias, order in zip(
            ("q_proj", "k_proj", "v_proj"), sizes, biases, orders, strict=True
        )
    ]


def fused_order(shape: AttentionShape) -> tuple[int, ...] | None:
    """Returns the order of rows that brings the queries of all heads above all keys and values."""
    if not shape.is_fused_by_head:
        return None
    rows = np.arange(3 * shape.num_heads * shape.head_dim)
    by_head = rows.reshape(shape.num_heads, 3, shape.head_dim)
    return tuple(by_head.swapaxes(0, 1).reshape(-1).tolist())


def head_order(num_heads: int, shape: AttentionShape) -> tuple[int, ...] | None:
    """Returns the order of rows that brings pairs (0, 1), (2, 3).. of each head to halves for
    `rotate`.

    The products of heads stay the same.
    """
    num_paired = shape.num_paired_dims
    if not num_paired:
        return None
    assert shape.qk_norm in (None, "own head"), "weights of the norms would have to follow"
    one = order_dimensions(shape)
    return tuple((np.arange(num_heads)[:, None] * shape.head_dim + one).reshape(-1).tolist())


def order_dimensions(shape: AttentionShape) -> NDArray[np.int64]:
    """Returns the order that brings the pairs of one head to halves."""
    order, num_paired = np.arange(shape.head_dim), shape.num_paired_dims
    order[:num_paired] = np.concatenate([np.arange(0, num_paired, 2), np.arange(1, num_paired, 2)])
    return order


def in_heads(b: Builder, rows: Node, norm_name: str, num_heads: int, shape: AttentionShape) -> Node:
    """Returns [T, heads, head_dim], with the norm if the family has it before the rotation."""
    if shape.qk_norm == "row":
        rows = b.norm(rows, norm_name, num_heads * shape.head_dim, shape.norm)
    heads = split_heads(rows, num_heads, shape.head_dim)
    if shape.qk_norm == "bare head":
        return normalise(heads, shape.norm)
    if shape.qk_norm == "head":
        return b.norm(heads, norm_name, shape.head_dim, shape.norm)
    if shape.qk_norm == "own head":
        weights = read_head_weights(b, norm_name, num_heads, shape)[:, order_dimensions(shape)]
        return ops.multiply(normalise(heads, shape.norm), b.graph.array(weights))
    return heads


def read_head_weights(
    b: Builder, norm_name: str, num_heads: int, shape: AttentionShape
) -> NDArray[np.float32]:
    """Returns the weights of the norms of all heads, [heads, head_dim]: one tensor, or one each."""
    if b.has(norm_name + ".weight"):
        return b.array(norm_name + ".weight", num_heads, shape.head_dim)
    names = [f"{norm_name}.norms.{head}.weight" for head in range(num_heads)]
    return np.stack([b.array(name, shape.head_dim) for name in names])
