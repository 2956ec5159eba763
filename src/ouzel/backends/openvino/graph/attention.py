"""Attention over the paged KV cache: one operation of the runtime, with 28 inputs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, empty, int32, merge_heads, output_of, real
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import op, ops, ov


@dataclass(frozen=True)
class KvInputs:
    """A layer's cache, `key_cache.<layer>` and `value_cache.<layer>`."""

    key: Node
    value: Node


def cache_inputs(graph: PagedGraph, layer: int) -> KvInputs:
    return KvInputs(
        *(
            graph.input(f"{kind}_cache.{layer}", [-1] * 4, ov.Type.dynamic)
            for kind in ("key", "value")
        )
    )


def paged_attention(
    graph: PagedGraph,
    query: Node,
    key: Node,
    value: Node,
    cache: KvInputs,
    *,
    num_kv_heads: int,
    key_dim: int,
    value_dim: int,
    scale: float,
    sliding_window: int = 0,
    sinks: NDArray[np.float32] | None = None,
    writes_cache: bool = True,
    sees_images_whole: bool = True,
) -> Node:
    """Takes queries, keys [T, heads, key_dim] and values as rows; returns [T, query heads *
    value_dim].

    A token sees `sliding_window` tokens, itself included; 0 stands for all. `sinks` are one logit
    for each query head. A layer that does not write its cache reads what an earlier layer wrote
    there, and its keys and values count for nothing. With `sees_images_whole` the tokens of an
    image see each other, where the model has that at all.
    """
    arguments = [
        merge_heads(query),
        merge_heads(key),
        value,
        cache.key,
        cache.value,
        *graph.paging,
        real(scale),
        int32(sliding_window),
        empty(np.float32),  # ALiBi slopes
        graph.max_context_len,
        empty(np.int32),  # score aggregation windows
        empty(np.int32),  # cache rotation: block indices
        empty(np.int32),  # and deltas
        empty(np.float32),  # and table
        empty(np.float32),  # XAttention: threshold
        int32(0),  # and block size
        int32(0),  # and stride
        empty(np.float32, 4) if sinks is None else ops.constant(sinks.reshape(1, -1, 1, 1)),
        int32(0),  # adaptive R-KV: start size
        *(empty(np.int32) for _ in range(3)),  # and evictable sizes, block indices and their begins
        graph.image_tokens
        if graph.image_tokens is not None and sees_images_whole
        else empty(np.int32),
        empty(np.uint8),  # query-query bias
        empty(np.int32),  # and its begins
    ]
    node = op._PagedAttentionExtension([output_of(argument) for argument in arguments])
    for kind, head_dim in (("k", key_dim), ("v", value_dim)):
        node.get_rt_info()[f"num_{kind}_heads"] = num_kv_heads
        node.get_rt_info()[f"{kind}_head_size"] = head_dim
    if not writes_cache:
        node.set_attribute("write_kv_cache", False)
    return node.output(0)
