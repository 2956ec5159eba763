"""Keys are divided by a scale for each channel, and queries are multiplied by it: their products stay the same.

A quantised cache has one range for a group of channels. Where a few channels are a hundred times larger than the
others, as with the biases of Qwen2's keys, they take the whole range. Divided by their scales, all channels of a group
need alike ranges. The scales stand behind the rotation, so that each channel may have its own.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ops, ov

KeyScales = Mapping[str, NDArray[np.float32]]  # [heads, channels of a key], by the name of the key cache's input


def scale_keys(graph: ov.Model, scales: KeyScales) -> None:
    """Changes the graph. A layer whose key cache has no scales stays as it is."""
    for node in graph.get_ops():
        if node.get_type_name() != "PagedAttentionExtension":
            continue
        query, key, cache = (node.input_value(index) for index in (0, 1, 3))
        name = cache.get_node().get_friendly_name()
        if name not in scales:
            continue
        num_heads, head_dim = scales[name].shape
        num_query_heads = query.get_partial_shape()[1].get_length() // head_dim
        by_query_head = np.repeat(scales[name], num_query_heads // num_heads, axis=0)
        for index, rows, factors in ((0, query, by_query_head), (1, key, 1 / scales[name])):
            scaled = ops.multiply(rows, ops.constant(factors.reshape(1, -1).astype(np.float32)))
            node.input(index).replace_source_output(scaled.output(0))
