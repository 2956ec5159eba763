"""The gated delta rule: a head's state S decays, learns what it lacks of the value, and answers the
query.

S = exp(log_decay) S;  S += (beta (v - S k)) k^T;  the answer is S q / sqrt(key_dim), where q and k
are of length 1. Source: transformers, models/qwen3_5/modeling_qwen3_5.py.

The runtime has an operation for it, PagedGatedDeltaNet, which takes one token after the other, each
slowly. So sequences with one token in a step go through Mamba-2's operation, twice, in half the
time, and the others are computed in chunks, by products of matrices (delta_chunks.py; decision
0018).
"""

from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.delta_chunks import Chunks, delta_rule_of
from ouzel.backends.openvino.graph.nodes import Node, gather, integers, real, split, split_heads
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.graph.precision import keep_float32
from ouzel.backends.openvino.graph.states import selective_scan, state_table
from ouzel.backends.openvino.library import ops

_NORM_EPS = 1e-6  # of queries and keys; the runtime's operation has the same


@dataclass(frozen=True, kw_only=True)
class DeltaHeads:
    """Each key head is that of as many value heads, one after the other."""

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
        """Of queries, keys and values of a token."""
        return 2 * self.key_size + self.value_size

    @property
    def state_shape(self) -> tuple[int, int, int]:
        return self.num_value_heads, self.value_dim, self.key_dim

    def split(self, mixed: Node) -> tuple[Node, Node, Node]:
        """Makes queries, keys and values, [T, heads, dim], of the rows that they lie in beside each
        other.
        """
        query, key, value = split(mixed, self.key_size, self.key_size, self.value_size)
        return (
            split_heads(query, self.num_key_heads, self.key_dim),
            split_heads(key, self.num_key_heads, self.key_dim),
            split_heads(value, self.num_value_heads, self.value_dim),
        )


def delta_rule(graph: PagedGraph, mixed: Node, rates: Node, layer: int, heads: DeltaHeads) -> Node:
    """Returns [T, value heads, value_dim]. `mixed` has queries, keys and values, `rates` log_decay
    and beta.

    The states that sequences in chunks have at the end are the output `next_state.delta.<layer>`.
    """
    table = delta_table(graph, layer, heads)
    answers, states = rows_in_chunks(graph, mixed, rates, table, heads)
    graph.output(f"next_state.delta.{layer}", states)
    return gather(
        ops.concat([single_rows(graph, mixed, rates, table, heads), answers], 0),
        graph.chunking.answers,
    )


def delta_table(graph: PagedGraph, layer: int, heads: DeltaHeads) -> Node:
    """Returns [slots, value heads, value_dim, key_dim] in f32, also where the rest of the model is
    in bf16.

    The runtime would make a table bf16 that its operation takes as it comes in; each step would
    round the states then, and take longer (decision 0018). The reshaped one is the same memory,
    which the operation writes to.
    """
    num_heads, value_dim, key_dim = heads.state_shape
    table = state_table(graph, "delta", layer, num_heads, value_dim * key_dim)
    return ops.reshape(table, integers(0, 0, value_dim, key_dim), True)


def single_rows(
    graph: PagedGraph, mixed: Node, rates: Node, table: Node, heads: DeltaHeads
) -> Node:
    """A row's rule is two scans: what the decayed state has at the key is read, then what it lacks
    is taken in.
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
    """Returns the answers of all rows of chunks, and each sequence's state behind its last one."""
    chunking = graph.chunking
    own_rows, begins = gather(mixed, chunking.rows), gather(table, chunking.slots)
    own_rates = ops.multiply(
        gather(rates, chunking.rows), chunking.is_row
    )  # what is no row changes nothing
    chunks = Chunks.cut(chunking.length, of_unit_length(own_rows, heads), halves(own_rates, heads))
    answers, states = delta_rule_of(chunks, begins, chunking.goes_on)
    states = gather(states, chunking.last_chunks)
    keep_float32([answers, states], own_rows, rates, table)
    return answers, states


def of_unit_length(mixed: Node, heads: DeltaHeads) -> tuple[Node, Node, Node]:
    """Returns queries, which are scaled as well, keys and values."""
    query, key, value = heads.split(mixed)
    query, key = (ops.normalize_l2(rows, integers(-1), _NORM_EPS, "add") for rows in (query, key))
    return ops.multiply(query, real(heads.key_dim**-0.5)), key, value


def halves(rates: Node, heads: DeltaHeads) -> tuple[Node, Node]:
    log_decay, beta = split(rates, heads.num_value_heads, heads.num_value_heads)
    return log_decay, beta
