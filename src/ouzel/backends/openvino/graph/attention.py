"""Computes attention over the paged KV cache, by one operation of the runtime with 28 inputs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, empty, get_output, int32, merge_heads, real
from ouzel.backends.openvino.graph.paged import PagedGraph, Paging
from ouzel.backends.openvino.library import op, ops, ov

SOFTCAP = "softcap"  # the note of a node whose soft cap the runtime does not compute
TWO_WAY_BEGINS = "two_way_begins"  # the input of a graph whose tokens may attend to later ones


@dataclass(frozen=True)
class KvInputs:
    """The inputs for a layer's cache, `key_cache.<layer>` and `value_cache.<layer>`."""

    key: Node
    value: Node


def cache_inputs(graph: PagedGraph, layer: int) -> KvInputs:
    key = graph.input(f"key_cache.{layer}", [-1] * 4, ov.Type.dynamic)
    value = graph.input(f"value_cache.{layer}", [-1] * 4, ov.Type.dynamic)
    return KvInputs(key, value)


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
    softcap: float = 0.0,
    sliding_window: int = 0,
    sinks: NDArray[np.float32] | None = None,
    slopes: NDArray[np.float32] | None = None,
    writes_cache: bool = True,
    attends_two_ways: bool = True,
    paging: Paging | None = None,
) -> Node:
    """Computes attention for queries, keys [T, heads, key_dim] and values as rows.

    Returns [T, query heads * value_dim]. A token attends to `sliding_window` tokens, itself
    included; 0 stands for all tokens. With a `softcap` above 0 the scaled products of queries and
    keys become softcap * tanh(product / softcap); only Ouzel's own kernels compute that. `sinks`
    have one logit for each query head, `slopes` the score that a query head loses for each token
    between query and key (ALiBi). With `writes_cache` False the layer reads the cache of an
    earlier layer, and its keys and values have no effect. With `attends_two_ways` two-way tokens
    attend to each other, if the model has any. `paging` has the inputs of the cache, by default
    those for the cache of the tokens themselves.
    """
    paging = paging or graph.own_paging
    two_way_tokens = empty(np.int32)
    if graph.two_way_tokens is not None and attends_two_ways:
        two_way_tokens = graph.two_way_tokens
    arguments = [
        merge_heads(query),
        merge_heads(key),
        value,
        cache.key,
        cache.value,
        *paging.tables,
        real(scale),
        int32(sliding_window),
        empty(np.float32) if slopes is None else ops.constant(slopes),  # ALiBi slopes
        paging.max_context_len,
        empty(np.int32),  # score aggregation windows
        empty(np.int32),  # cache rotation: block indices
        empty(np.int32),  # cache rotation: deltas
        empty(np.float32),  # cache rotation: table
        empty(np.float32),  # XAttention: threshold
        int32(0),  # XAttention: block size
        int32(0),  # XAttention: stride
        empty(np.float32, 4) if sinks is None else ops.constant(sinks.reshape(1, -1, 1, 1)),
        int32(0),  # adaptive R-KV: start size
        # adaptive R-KV: evictable sizes, block indices and their begins
        *(empty(np.int32) for _ in range(3)),
        two_way_tokens,
        empty(np.uint8),  # query-query bias
        empty(np.int32),  # begins of the query-query bias
    ]
    node = op._PagedAttentionExtension([get_output(argument) for argument in arguments])
    for kind, head_dim in (("k", key_dim), ("v", value_dim)):
        node.get_rt_info()[f"num_{kind}_heads"] = num_kv_heads
        node.get_rt_info()[f"{kind}_head_size"] = head_dim
    if softcap:
        node.get_rt_info()[SOFTCAP] = repr(softcap)  # notes are strings or integers
    if not writes_cache:
        node.set_attribute("write_kv_cache", False)
    return node.output(0)


def read_softcap_note(attention: Node) -> float:
    """Returns the soft cap of an attention operation, 0 if it has none."""
    notes = attention.get_rt_info()
    return float(notes[SOFTCAP].astype(str)) if SOFTCAP in notes else 0.0
