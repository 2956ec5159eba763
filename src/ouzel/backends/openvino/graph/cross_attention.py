"""Builds attention to the frames of a sound, whose keys and values lie in blocks of a cache.

Each window of sound has a slot: successive blocks, which one graph fills after the encoder. In the
decoder each row is a sequence of its own, so that it attends to all frames of its slot: the
operation of the runtime is causal within a sequence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ouzel.backends.openvino.graph.attention import KvInputs, paged_attention
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node, part, split_heads
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import ops, ov

CROSS_PREFIXES = ("cross_key.", "cross_value.")
FRAMES = "frames"  # the input of the graph that fills slots: rows of the encoder
# outputs with the queries and the keys of the alignment heads, [rows, heads * head_dim]
CROSS_QUERIES, ALIGNMENT_KEYS = "cross_queries", "alignment_keys"
Heads = Sequence[tuple[int, int]]  # layer and head of each


@dataclass(frozen=True, kw_only=True)
class CrossShape:
    """The sizes of the attention of one checkpoint's decoder to a sound."""

    hidden_size: int
    num_heads: int
    num_layers: int

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads


def attend_to_frames(
    b: Builder, rows: Node, prefix: str, layer: int, shape: CrossShape
) -> tuple[Node, Node]:
    """Returns what the rows [T, hidden_size] take from the frames, and their queries [T,
    hidden_size].
    """
    size = shape.hidden_size
    query = b.linear(rows, prefix + "q_proj", size, size, has_bias=True)
    heads = split_heads(query, shape.num_heads, shape.head_dim)
    attended = paged_attention(
        b.graph,
        heads,
        heads,  # no keys and values of the rows themselves: the cache is not written
        query,
        _cache_inputs(b.graph, layer),
        num_kv_heads=shape.num_heads,
        key_dim=shape.head_dim,
        value_dim=shape.head_dim,
        scale=shape.head_dim**-0.5,
        writes_cache=False,
        paging=b.graph.cross_paging,
    )
    return b.linear(attended, prefix + "out_proj", size, size, has_bias=True), query


def join_heads(rows: Mapping[int, Node], heads: Heads, head_dim: int) -> Node:
    """Joins the columns of some heads, from the rows [rows, hidden_size] of each layer."""
    columns = [
        part(rows[layer], head * head_dim, (head + 1) * head_dim, axis=1) for layer, head in heads
    ]
    return ops.concat(columns, 1)


def build_filling(b: Builder, prefix: str, shape: CrossShape, alignment_heads: Heads) -> ov.Model:
    """Builds the graph that writes keys and values of `frames` [frames, hidden_size] into the
    cache.

    `prefix` has `{layer}` for the number of a layer. Each frame attends to itself alone, so that
    the operation does little but write.
    """
    size = shape.hidden_size
    frames = b.graph.input(FRAMES, [-1, size], ov.Type.f32)
    written, keys = list[Node](), dict[int, Node]()
    for layer in range(shape.num_layers):
        names = prefix.format(layer=layer)
        key = b.linear(frames, names + "k_proj", size, size)
        value = b.linear(frames, names + "v_proj", size, size, has_bias=True)
        heads, keys[layer] = split_heads(key, shape.num_heads, shape.head_dim), key
        attended = paged_attention(
            b.graph,
            heads,
            heads,
            value,
            _cache_inputs(b.graph, layer),
            num_kv_heads=shape.num_heads,
            key_dim=shape.head_dim,
            value_dim=shape.head_dim,
            scale=1.0,
            sliding_window=1,
            paging=b.graph.cross_paging,
        )
        written.append(part(part(attended, 0, 1, axis=0), 0, 1, axis=1))
    if alignment_heads:
        b.graph.output(ALIGNMENT_KEYS, join_heads(keys, alignment_heads, shape.head_dim))
    return b.graph.finish_used(ops.concat(written, 0), "written")


def _cache_inputs(graph: PagedGraph, layer: int) -> KvInputs:
    return KvInputs(
        *(graph.input(f"{prefix}{layer}", [-1] * 4, ov.Type.dynamic) for prefix in CROSS_PREFIXES)
    )
