"""Computes the gated delta rule for a chunk of a sequence's tokens at once, by matrix products.

Behind token i of a chunk a head's state is

    S_i = exp(g_i) S_0 + sum over j <= i of exp(g_i - g_j) u_j k_j^T

Here g sums the chunk's log_decay up to a token, and U, the additions of the tokens, solves

    (1 + A) U = beta (V - exp(g) K S_0^T)
    A_ij = beta_i exp(g_i - g_j) k_i k_j for j < i, else 0

All terms without S_0 are computed for all chunks together; a loop carries the state from one chunk
to the next. Source: Yang, Kautz, Hatamizadeh: Gated Delta Networks, arXiv 2412.06464, 3.3 (with S
as its transpose).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.chunk_length import LONGEST_CHUNK, ChunkLength
from ouzel.backends.openvino.graph.nodes import Node, gather, get_output, integers, real
from ouzel.backends.openvino.graph.precision import keep_float32
from ouzel.backends.openvino.library import op, ops, ov

_LARGEST_DECAY = -30.0
# 1 for the same and for earlier tokens
_EARLIER = np.tril(np.ones((LONGEST_CHUNK, LONGEST_CHUNK), np.float32))
_SAME = np.eye(LONGEST_CHUNK, dtype=np.float32)


@dataclass(frozen=True)
class Chunks:
    """N chunks of C tokens in tensors [N, heads, C, ...].

    Queries and keys have fewer heads than values; each of them serves as many value heads.
    """

    length: ChunkLength
    query: Node
    key: Node
    value: Node
    decay: Node  # log_decay, summed from the chunk's first token on, [N, value heads, C, 1]
    beta: Node
    num_key_heads: int

    @classmethod
    def cut(
        cls, length: ChunkLength, mixed: tuple[Node, Node, Node], rates: tuple[Node, Node]
    ) -> "Chunks":
        """Cuts rows into chunks.

        `mixed` are queries, keys and values, [N * C, heads, dim]; `rates` are log_decay and beta,
        [N * C, value heads].
        """
        query, key, value = (by_head(rows, length) for rows in mixed)
        log_decay, beta = (column(rows, length) for rows in rates)
        return cls(
            length=length,
            query=query,
            key=key,
            value=value,
            decay=ops.matmul(length.corner(_EARLIER), log_decay, False, False),
            beta=beta,
            num_key_heads=num_heads(key),
        )

    def scaled(self, of_key_heads: Node, factors: Node) -> Node:
        """Multiplies values by key head, [N, key heads, C, X], by factors, [N, value heads, C, X or
        1].
        """
        if num_heads(factors) == self.num_key_heads:
            return ops.multiply(of_key_heads, factors)
        pattern = self.length.shape(0, self.num_key_heads, -1, None, last_size(factors))
        per_head = ops.reshape(
            of_key_heads, self.length.shape(0, 0, 1, None, last_size(of_key_heads)), True
        )
        product = ops.multiply(per_head, ops.reshape(factors, pattern, True))
        return ops.reshape(
            product, self.length.shape(0, num_heads(factors), None, last_size(of_key_heads)), True
        )


def compute_delta_rule(chunks: Chunks, begins: Node, goes_on: Node) -> tuple[Node, Node]:
    """Returns the answers, [N * C, value heads, value_dim], and the state after each chunk.

    A chunk begins with its state in `begins`, [N, value heads, value_dim, key_dim], or, if it is
    set in `goes_on`, [N], with the state of the chunk before.
    """
    decay, beta, minus_beta = chunks.decay, chunks.beta, ops.multiply(chunks.beta, real(-1.0))
    since = fraction(
        ops.minimum(ops.subtract(decay, ops.transpose(decay, integers(0, 1, 3, 2))), real(0.0))
    )
    key_products, query_products = (
        ops.matmul(rows, chunks.key, False, True) for rows in (chunks.key, chunks.query)
    )
    inverse = invert_one_minus(
        ops.multiply(chunks.scaled(key_products, since), minus_beta), chunks.length
    )
    end = ops.gather(decay, integers(-1), integers(2))
    answers, states = run_chunks(
        state_free=ops.matmul(inverse, ops.multiply(chunks.value, beta), False, False),
        erasing=ops.matmul(
            inverse,
            chunks.scaled(chunks.key, ops.multiply(minus_beta, fraction(decay))),
            False,
            False,
        ),
        query=chunks.scaled(chunks.query, fraction(decay)),
        within=ops.multiply(chunks.scaled(query_products, since), chunks.length.corner(_EARLIER)),
        key=chunks.scaled(chunks.key, fraction(ops.subtract(end, decay))),
        kept=fraction(end),
        begins=begins,
        goes_on=ops.reshape(goes_on, integers(-1, 1, 1, 1), False),
    )
    rows = ops.transpose(answers, integers(0, 2, 1, 3))
    return ops.reshape(rows, integers(-1, *shape_of_one(rows)[1:]), False), states


def fraction(decay: Node) -> Node:
    """Returns exp(decay), but at least 1e-13.

    Smaller fractions change no sum, and denormal numbers take ten times as long.
    """
    return ops.exp(ops.maximum(decay, real(_LARGEST_DECAY)))


def invert_one_minus(matrices: Node, length: ChunkLength) -> Node:
    """Returns (1 - A)^-1 for the part A of [..., C, C] below the diagonal; the rest is ignored.

    The inverse of [[P, 0], [-R, Q]] is [[P', 0], [Q' R P', Q']], with the inverses P' and Q' of P
    and Q. The algorithm begins with blocks of size one, whose inverse is one, and doubles their
    size with two products for all blocks together. Unlike a sum of powers of A, this loses no
    digits if keys are alike.
    """
    inverse: Node = length.corner(_SAME)
    size = 1
    while size < LONGEST_CHUNK:
        below = ops.multiply(matrices, length.corner(below_diagonal_blocks(size)))
        if size > 1:
            below = ops.matmul(ops.matmul(inverse, below, False, False), inverse, False, False)
        inverse = ops.add(inverse, below)
        size *= 2
    return inverse


def below_diagonal_blocks(size: int) -> NDArray[np.float32]:
    """Returns 1 in the lower left quarters of the blocks of 2 * `size` along the diagonal,
    else 0.
    """
    block = np.arange(LONGEST_CHUNK) // size
    return np.array((block[:, None] % 2 == 1) & (block[None] == block[:, None] - 1), np.float32)


def run_chunks(begins: Node, goes_on: Node, **of_chunks: Node) -> tuple[Node, Node]:
    """Runs the chunks one after the other.

    Returns answers, [N, heads, C, value_dim], and states, [N, ...].
    """
    sliced = {"begins": begins, "goes_on": goes_on, **of_chunks}
    inner = {
        name: ops.parameter([1, *shape_of_one(value)], get_output(value).get_element_type())
        for name, value in sliced.items()
    }
    before = ops.parameter([1, *shape_of_one(begins)], ov.Type.f32)
    state = ops.select(inner["goes_on"], before, inner["begins"])
    added = ops.add(inner["state_free"], ops.matmul(inner["erasing"], state, False, True))
    answers = ops.add(
        ops.matmul(inner["query"], state, False, True),
        ops.matmul(inner["within"], added, False, False),
    )
    state = ops.add(
        ops.multiply(state, inner["kept"]), ops.matmul(added, inner["key"], True, False)
    )
    results = [ops.result(each) for each in (state, answers, ops.constant(True))]
    keep_float32(results, *inner.values(), before)
    num_chunks = gather(ops.shape_of(begins), integers(0))
    loop = op.loop(num_chunks.output(0), ops.constant(True).output(0))
    loop.set_function(ov.Model(results, [*inner.values(), before], "chunks"))
    # The body takes no iteration number (-1); its output 2 tells whether to go on.
    loop.set_special_body_ports([-1, 2])
    for name, value in sliced.items():
        loop.set_sliced_input(inner[name], get_output(value), 0, 1, 1, -1, 0)
    nothing = ops.constant(np.zeros((1, *shape_of_one(begins)), np.float32))
    loop.set_merged_input(before, nothing.output(0), results[0].output(0))
    states, answers = (
        loop.get_concatenated_slices(result.output(0), 0, 1, 1, -1, 0) for result in results[:2]
    )
    return answers, states


def by_head(rows: Node, length: ChunkLength) -> Node:
    """Turns [N * C, heads, dim] into [N, heads, C, dim]."""
    chunks = ops.reshape(rows, length.shape(-1, None, num_heads(rows), last_size(rows)), False)
    return ops.transpose(chunks, integers(0, 2, 1, 3))


def column(rates: Node, length: ChunkLength) -> Node:
    """Turns [N * C, heads] into [N, heads, C, 1]."""
    chunks = ops.reshape(rates, length.shape(-1, None, num_heads(rates), 1), False)
    return ops.transpose(chunks, integers(0, 2, 1, 3))


def num_heads(rows: Node) -> int:
    """Returns the size of the second axis, which is the heads in rows and in chunks."""
    return shape_of_one(rows)[0]


def last_size(rows: Node) -> int | None:
    """Returns the size of the last axis, None for the length of chunks."""
    size = shape_of_one(rows)[-1]
    return None if size < 0 else size


def shape_of_one(rows: Node) -> list[int]:
    """Returns the shape without its first axis; the length of chunks is -1."""
    return [
        size.get_length() if size.is_static else -1
        for size in list(get_output(rows).get_partial_shape())[1:]
    ]
