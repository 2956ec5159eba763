"""Computes the gated delta rule: a state decays, learns a value, and answers a query.

For each head, S = exp(log_decay) S;  S += (beta (v - S k)) k^T;  the answer is S q / sqrt(key_dim),
where q and k have length 1. Source: transformers, models/qwen3_5/modeling_qwen3_5.py.

The runtime's operation for it, PagedGatedDeltaNet, computes one token after the other, each slowly.
So sequences with one token in a step use Mamba-2's operation twice, in half the time. All others
are computed in chunks, by matrix products (delta_chunks.py; decision 0018).
"""

from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.delta_chunks import Chunks, compute_delta_rule
from ouzel.backends.openvino.graph.nodes import Node, gather, integers, real, split, split_heads
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.graph.precision import keep_float32
from ouzel.backends.openvino.graph.states import selective_scan, state_table
from ouzel.backends.openvino.library import ops

_NORM_EPS = 1e-6  # added to squares of queries and keys; the runtime's operation has the same value


@dataclass(frozen=True, kw_only=True)
class DeltaHeads:
    """The heads of a delta net. Each key head serves as many value heads, one after the
    other.
    """

    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int

    @property
    def key_size(self) -> int:
        return self.num_key_heads * self.key_dim

    @property
    def value_size(self) -> int:
        return self.num_value_heads * self.value_dim

    @property
    def size(self) -> int:
        """Returns the numbers in queries, keys and values of a token."""
        return 2 * self.key_size + self.value_size

    @property
    def state_shape(self) -> tuple[int, int, int]:
        return self.num_value_heads, self.value_dim, self.key_dim

    def split(self, mixed: Node) -> tuple[Node, Node, Node]:
        """Splits rows into queries, keys and values, each [T, heads, dim]."""
        query, key, value = split(mixed, self.key_size, self.key_size, self.value_size)
        return (
            split_heads(query, self.num_key_heads, self.key_dim),
            split_heads(key, self.num_key_heads, self.key_dim),
            split_heads(value, self.num_value_heads, self.value_dim),
        )


def delta_rule(graph: PagedGraph, mixed: Node, rates: Node, layer: int, heads: DeltaHeads) -> Node:
    """Returns the answers, [T, value heads, value_dim].

    `mixed` has queries, keys and values, `rates` log_decay and beta. The final states of sequences
    in chunks are the output `next_state.delta.<layer>`.
    """
    table = delta_table(graph, layer, heads)
    answers, states = rows_in_chunks(graph, mixed, rates, table, heads)
    graph.output(f"next_state.delta.{layer}", states)
    return gather(
        ops.concat([single_rows(graph, mixed, rates, table, heads), answers], 0),
        graph.chunking.answers,
    )


def delta_table(graph: PagedGraph, layer: int, heads: DeltaHeads) -> Node:
    """Returns the table of states, [slots, value heads, value_dim, key_dim], always in f32.

    The runtime would turn a table that its operation takes directly into bf16 if the model is in
    bf16. Each step would then round the states, and take longer (decision 0018). The reshaped table
    is the same memory, which the operation writes to.
    """
    num_heads, value_dim, key_dim = heads.state_shape
    table = state_table(graph, "delta", layer, num_heads, value_dim * key_dim)
    return ops.reshape(table, integers(0, 0, value_dim, key_dim), True)


def single_rows(
    graph: PagedGraph, mixed: Node, rates: Node, table: Node, heads: DeltaHeads
) -> Node:
    """Computes the rule for single rows by two scans.

    The first reads the value of the decayed state at the key; the second adds the part that the
    state lacks.
    """
    chunking = graph.chunking
    own_rows = gather(mixed, chunking.single_rows)
    query, key, value = of_unit_length(own_rows, heads)
    log_decay, beta = halves(gather(rates, chunking.single_rows), heads)
    nothing = ops.multiply(value, real(0.0))
    decays, keeps = (
        graph.array(np.full(heads.num_value_heads, rate, np.float32)) for rate in (-1.0, 0.0)
    )
    found = selective_scan(
        (nothing, key, key), ops.multiply(log_decay, real(-1.0)), decays, table, chunking.paging
    )
    lacking = ops.add(value, ops.multiply(found, real(-1.0)))
    added = ops.multiply(lacking, ops.reshape(beta, integers(0, 0, 1), True))
    whole = ops.add(ops.multiply(beta, real(0.0)), real(1.0))
    answers = selective_scan((added, key, query), whole, keeps, table, chunking.again)
    keep_float32([answers], own_rows, rates, table)
    return answers


def rows_in_chunks(
    graph: PagedGraph, mixed: Node, rates: Node, table: Node, heads: DeltaHeads
) -> tuple[Node, Node]:
    """Returns the answers of all rows in chunks, and each sequence's state after its last row."""
    chunking = graph.chunking
    own_rows, begins = gather(mixed, chunking.rows), gather(table, chunking.slots)
    # Rates of 0 leave the state as it is, for places in a chunk without a row.
    own_rates = ops.multiply(gather(rates, chunking.rows), chunking.is_row)
    chunks = Chunks.cut(chunking.length, of_unit_length(own_rows, heads), halves(own_rates, heads))
    answers, states = compute_delta_rule(chunks, begins, chunking.goes_on)
    states = gather(states, chunking.last_chunks)
    keep_float32([answers, states], own_rows, rates, table)
    return answers, states


def of_unit_length(mixed: Node, heads: DeltaHeads) -> tuple[Node, Node, Node]:
    """Returns queries of unit length, scaled by 1 / sqrt(key_dim), keys of unit length, and
    values.
    """
    query, key, value = heads.split(mixed)
    query, key = (ops.normalize_l2(rows, integers(-1), _NORM_EPS, "add") for rows in (query, key))
    return ops.multiply(query, real(heads.key_dim**-0.5)), key, value


def halves(rates: Node, heads: DeltaHeads) -> tuple[Node, Node]:
    log_decay, beta = split(rates, heads.num_value_heads, heads.num_value_heads)
    return log_decay, beta
