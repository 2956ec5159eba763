"""Divides keys by a scale for each channel and multiplies queries by it: their products stay the
same.

A quantised cache has one range for a group of channels. If a few channels are a hundred times
larger than the others, as with the biases of Qwen2's keys, they take the whole range. Divided by
their scales, all channels of a group need similar ranges.

If only a rotation stands between the products by compressed matrices and the attention, the scales
become a part of these matrices, and take no time (scaled_product.py). A rotation mixes the two
channels of a pair, so a pair has one scale: the root of the mean square of both scales, rounded to
a power of two, so that the products stay exact. All other layers have their scales after the
rotation, in two operations for each layer.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, get_output
from ouzel.backends.openvino.graph.scaled_product import find_product
from ouzel.backends.openvino.library import ops, ov

# [heads, channels of a key], by the name of the key cache's input
KeyScales = Mapping[str, NDArray[np.float32]]

# prefixes of the names of nodes; the cache's name follows
QUERY_ROWS, KEY_ROWS = "query_rows of ", "key_rows of "
NUM_ROTARY_DIMS = "num_rotary_dims"


def mark_rows(query: Node, key: Node, cache: Node, num_rotary_dims: int) -> None:
    """Marks rows for which only a rotation stands between them and the attention.

    The rotation turns the first `num_rotary_dims` channels of each head.
    """
    for prefix, rows in ((QUERY_ROWS, query), (KEY_ROWS, key)):
        node = get_output(rows).get_node()
        node.set_friendly_name(prefix + cache.get_friendly_name())
        node.get_rt_info()[NUM_ROTARY_DIMS] = num_rotary_dims


def scale_keys(graph: ov.Model, scales: KeyScales) -> None:
    """Changes the graph in place. A layer whose key cache has no scales stays as it is."""
    if not scales:
        return
    marked = {node.get_friendly_name(): node for node in graph.get_ops()}
    for node in graph.get_ops():
        if node.get_type_name() != "PagedAttentionExtension":
            continue
        name = node.input_value(3).get_node().get_friendly_name()
        if name not in scales:
            continue
        if not scale_products(
            marked.get(QUERY_ROWS + name), marked.get(KEY_ROWS + name), scales[name]
        ):
            scale_inputs(node, scales[name])


def scale_products(query: Node | None, key: Node | None, scales: NDArray[np.float32]) -> bool:
    """Scales the products that make queries and keys; returns False if they cannot take the
    scales.
    """
    if query is None or key is None:
        return False
    products = find_product(query), find_product(key)
    if products[0] is None or products[1] is None:
        return False
    by_head = by_pair(scales, key.get_rt_info()[NUM_ROTARY_DIMS].astype(int))
    products[0].scale_rows(by_query_head(by_head, query.get_output_partial_shape(0)).reshape(-1))
    products[1].scale_rows(np.reciprocal(by_head).reshape(-1))
    return True


def scale_inputs(attention: Node, scales: NDArray[np.float32]) -> None:
    """Multiplies queries by the scales and keys by their inverse, as inputs of the attention."""
    by_query = by_query_head(scales, attention.input_value(0).get_partial_shape())
    for index, factors in enumerate((by_query, np.reciprocal(scales))):
        by_column = ops.constant(factors.reshape(1, -1).astype(np.float32))
        scaled = ops.multiply(attention.input_value(index), by_column)
        attention.input(index).replace_source_output(scaled.output(0))


def by_query_head(scales: NDArray[np.float32], rows: ov.PartialShape) -> NDArray[np.float32]:
    """Returns the scales for the heads of queries, several of which share a head of keys.

    `rows` is the shape of the queries' rows.
    """
    num_heads, head_dim = scales.shape
    return np.repeat(scales, rows[1].get_length() // head_dim // num_heads, axis=0)


def by_pair(scales: NDArray[np.float32], num_rotary_dims: int) -> NDArray[np.float32]:
    """Gives both channels of a pair one scale; pairs are (0, n / 2), (1, n / 2 + 1), ..."""
    half = num_rotary_dims // 2
    of_pair = np.sqrt((scales[:, :half] ** 2 + scales[:, half:num_rotary_dims] ** 2) / 2)
    paired = np.concatenate([of_pair, of_pair, scales[:, num_rotary_dims:]], axis=1)
    powers: NDArray[np.float32] = np.exp2(np.round(np.log2(paired))).astype(np.float32)
    return powers
