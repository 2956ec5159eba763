"""Computes products of attention that depend on the distance between a query and a key.

A table has a row for each distance, or for several far distances together. Only the rows of the
distances within the longest text of a step are projected: 2 L - 1 rows for L places.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, gather, integers, real
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig

_MOST_POSITIONS = 2**17


def read_num_positions(config: HfConfig) -> int:
    """Returns `max_position_embeddings` of a family whose tables have all distances.

    Raises ModelLoadError if the tables would be too large: no tensor has their size.
    """
    num_positions = config.size("max_position_embeddings")
    if num_positions > _MOST_POSITIONS:
        raise config.refuse("max_position_embeddings", f"at most {_MOST_POSITIONS}")
    return num_positions


def bucket_distances(num_places: int, num_buckets: int, max_distance: int) -> NDArray[np.int32]:
    """Returns the buckets of the distances from 1 - num_places to num_places - 1.

    Distances up to half of `num_buckets` have a bucket each; farther ones share buckets by their
    logarithm. With `num_buckets` 0 every distance is its own bucket.
    """
    distances = np.arange(1 - num_places, num_places)
    if not num_buckets:
        return distances.astype(np.int32)
    middle = num_buckets // 2
    far = np.maximum(np.abs(distances), middle).astype(np.float32)
    longest = np.log(np.float32((max_distance - 1) / middle))
    steps = np.ceil(np.log(far / np.float32(middle)) / longest * np.float32(middle - 1))
    is_near = np.abs(distances) <= middle
    return np.where(is_near, distances, (steps + middle) * np.sign(distances)).astype(np.int32)


def compute_alibi(num_heads: int, num_positions: int) -> NDArray[np.float32]:
    """Returns the bias of each head by distance, [heads, 2 * num_positions - 1].

    It falls by a slope for each place.
    """
    slopes = compute_slopes(num_heads)
    distances = np.abs(np.arange(1 - num_positions, num_positions))
    return (-slopes[:, None] * distances).astype(np.float32)


def compute_slopes(num_heads: int) -> NDArray[np.float32]:
    """Returns the slope of each head, by which scores fall for each place between two tokens.

    The slopes of a power of two of heads are a geometric sequence that ends at 2 ** -8; further
    heads take every other slope of twice as many heads.
    """
    power = 1 << (num_heads.bit_length() - 1)
    slopes = 2.0 ** (-8.0 * np.arange(1, power + 1) / power)
    finer = 2.0 ** (-8.0 * np.arange(1, 2 * power + 1) / (2 * power))
    return np.concatenate([slopes, finer[::2][: num_heads - power]]).astype(np.float32)


def take_distances(table: Node, rows: NDArray[np.int32], num_places: Node) -> Node:
    """Returns the table's rows for the distances of L places, [2 L - 1, columns], ascending.

    `rows` has the table's row of each distance, as `bucket_distances` orders them; `num_places` is
    L, a vector of one element.
    """
    middle = integers(len(rows) // 2)
    begin = ops.add(ops.subtract(middle, num_places), integers(1))
    needed = ops.slice(
        ops.constant(rows), begin, ops.add(middle, num_places), integers(1), integers(0)
    )
    return gather(table, needed)


def reverse(rows: Node) -> Node:
    """Reverses the order of the rows."""
    return ops.slice(rows, integers(-1), integers(-(2**31)), integers(-1), integers(0))


def align_distances(products: Node, num_places: Node) -> Node:
    """Turns [texts, heads, L, 2 L - 1] into [texts, heads, L, L].

    Row i, column c stands for place i and the place i + c - L + 1. The result has in row i the
    columns of the places 0 to L - 1.
    """
    # A further column makes each row 2 L long; read with one column less, row i moves by i to the
    # left.
    longer = ops.pad(products, integers(0, 0, 0, 0), integers(0, 0, 0, 1), "constant", real(0.0))
    flat = ops.reshape(longer, integers(0, 0, -1), True)
    begin = ops.subtract(num_places, integers(1))
    width = ops.add(num_places, begin)
    end = ops.add(begin, ops.multiply(num_places, width))
    moved = ops.slice(flat, begin, end, integers(1), integers(2))
    rows = ops.reshape(moved, ops.concat([integers(0, 0), num_places, width], 0), True)
    return ops.slice(rows, integers(0), num_places, integers(1), integers(3))
