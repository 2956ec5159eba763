"""Replaces the runtime's attention by an operation of the kernels.

The kernels have three types of cache. kernels/src/context.h describes the order of the numbers in a
block.

- f16: [blocks, heads, 32 tokens, 2 * channels] in i8. Two bytes are one f16 number, because the
  plugin would convert an input in f16.
- u8: [blocks, heads, 32 tokens, channels / 32 * 35] in u8. 32 channels of a token have a scale in
  f16 and a zero point in u8.
- f32: [blocks, heads, 32 tokens, channels] in i32, for models whose attention the plugin lacks.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.attention import TWO_WAY_BEGINS, read_softcap_note
from ouzel.backends.openvino.graph.nodes import Node, integers, put_in_place, read_number
from ouzel.backends.openvino.kernels.library import make_operation
from ouzel.backends.openvino.library import ops, ov

Blocks = NDArray[np.int8] | NDArray[np.int32]
Floats = NDArray[np.float32]

ATTENTION = "OuzelAttention"
PLUGIN_ATTENTION = "PagedAttentionExtension"
F16_CACHE = ov.Type.i8  # no cache of the plugin has this type
U8_CACHE = ov.Type.u8
F32_CACHE = ov.Type.i32  # four bytes of an f32 number; no cache of the plugin has this type
OWN_NAMES = {F16_CACHE: "f16", F32_CACHE: "f32"}  # the names in EngineInfo
_BLOCK_TOKENS = 32
_LINE = 32  # numbers of a line; a head has a multiple of them
_MOST_CHANNELS = 512

# The plugin's inputs by their places, which graph/attention.py lists.
_CACHES = (3, 4)
_SCALE, _WINDOW, _SINKS = 9, 10, 20
_PASSED = range(9)  # queries to begins of blocks: inputs of our operation, too
_TWO_WAY_TOKENS = 25
# The operation of the kernels lacks ALiBi, scores, rotation of the cache, sparse attention and
# biases. These inputs must be empty, so that they are off.
_ABSENT = (11, 13, 14, 15, 16, 17, 22, 23, 24, 26, 27)


@dataclass(frozen=True, slots=True)
class _Heads:
    num_heads: int
    num_kv_heads: int
    size: int
    scale: float
    softcap: float  # 0: no soft cap
    window: int  # tokens; 0: all
    has_two_way_tokens: bool  # True: some tokens may attend to later ones


def replace_attention(graph: ov.Model, cache_type: ov.Type) -> None:
    """Changes the graph in place: attention over a cache of one of the three types.

    An attention that the kernels do not compute stays as it is.

    Operations that share a cache are replaced together, or not at all.
    """
    by_cache: defaultdict[str, list[Node]] = defaultdict(list)
    for node in graph.get_ordered_ops():
        if node.get_type_name() == PLUGIN_ATTENTION:
            by_cache[node.input_value(_CACHES[0]).get_node().get_friendly_name()].append(node)
    for nodes in by_cache.values():
        found = [heads for heads in map(_read_heads, nodes) if heads is not None]
        if (
            len(found) == len(nodes)
            and len({(each.num_kv_heads, each.size) for each in found}) == 1
        ):
            for node, heads in zip(nodes, found, strict=True):
                _replace(graph, node, heads, cache_type)


def attends_everywhere(graph: ov.Model) -> bool:
    """Tells whether the kernels compute each attention of a graph."""
    return all(
        _read_heads(node) is not None
        for node in graph.get_ops()
        if node.get_type_name() == PLUGIN_ATTENTION
    )


def unpack_keys(blocks: Blocks) -> Floats:
    """Returns the keys of blocks of floats as f32 [N, heads, 32, channels].

    Blocks are [N, heads, 32, 2 * channels] in f16, [N, heads, 32, channels] in f32.
    """
    floats = _view_floats(blocks)
    *outer, num_tokens, channels = floats.shape
    parts = floats.reshape(*outer, 2, channels // 8, 4, 2, 4, 4)
    ordered = parts.transpose(0, 1, 2, 4, 6, 3, 5, 7)
    return ordered.reshape(*outer, num_tokens, channels).astype(np.float32)


def unpack_values(blocks: Blocks) -> Floats:
    """Returns the values of blocks like `unpack_keys`."""
    return _view_floats(blocks).astype(np.float32)


def _view_floats(blocks: Blocks) -> NDArray[np.floating]:
    """Returns the numbers of a cache of the kernels, f16 or f32 by the type of the bytes."""
    return blocks.view(np.float16 if blocks.dtype == np.int8 else np.float32)


def _read_heads(node: Node) -> _Heads | None:
    """Returns the sizes of an attention, None if the kernels do not compute it."""
    if not all(_is_absent(node.input_value(index).get_node()) for index in _ABSENT):
        return None
    if node.input_value(_SINKS).get_node().get_type_name() != "Constant":
        return None
    scale, window = (read_number(node.input_value(index).get_node()) for index in (_SCALE, _WINDOW))
    columns = node.input_value(0).get_partial_shape()[1]
    facts = node.get_rt_info()
    if scale is None or window is None or not columns.is_static or "num_k_heads" not in facts:
        return None
    num_kv_heads, size, value_size = (
        facts[name].astype(int) for name in ("num_k_heads", "k_head_size", "v_head_size")
    )
    if size != value_size or size % _LINE or size > _MOST_CHANNELS:
        return None
    return _Heads(
        num_heads=columns.get_length() // size,
        num_kv_heads=num_kv_heads,
        size=size,
        scale=scale,
        softcap=read_softcap_note(node),
        window=int(window),
        has_two_way_tokens=not _is_absent(node.input_value(_TWO_WAY_TOKENS).get_node()),
    )


def _is_absent(node: Node) -> bool:
    """Tells whether an input is an empty constant, or a constant of zeros."""
    return node.get_type_name() == "Constant" and not np.any(node.get_data())


def _replace(graph: ov.Model, node: Node, heads: _Heads, cache_type: ov.Type) -> None:
    token_sizes = {F16_CACHE: 2 * heads.size, U8_CACHE: heads.size // _LINE * 35}
    token_size = token_sizes.get(cache_type, heads.size)
    for index in _CACHES:
        cache = node.input_value(index).get_node()
        cache.set_element_type(cache_type)
        cache.set_partial_shape(
            ov.PartialShape([-1, heads.num_kv_heads, _BLOCK_TOKENS, token_size])
        )
        cache.validate_and_infer_types()
    inputs = [node.input_value(index) for index in _PASSED]
    sinks = node.input_value(_SINKS)
    has_sinks = math.prod(sinks.get_shape()) > 0
    if has_sinks:
        inputs.append(ops.reshape(sinks, integers(-1), False).output(0))
    if heads.has_two_way_tokens:
        inputs.append(graph.input(TWO_WAY_BEGINS))
    attributes = {
        "num_heads": heads.num_heads,
        "num_kv_heads": heads.num_kv_heads,
        "head_size": heads.size,
        "scale": heads.scale,
        "softcap": heads.softcap,
        "window": heads.window,
        "has_sinks": has_sinks,
        "has_two_way_tokens": heads.has_two_way_tokens,
        "writes_cache": bool(node.get_attributes().get("write_kv_cache", True)),
    }
    put_in_place(node.output(0), make_operation(ATTENTION, inputs, attributes).output(0))
