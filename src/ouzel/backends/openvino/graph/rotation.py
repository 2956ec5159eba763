"""Rotary positions in a graph: the host computes the angles (rope.py), and the graph turns queries
and keys by them.

Written so that the CPU plugin fuses it (its concat axes must be -1).
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.nodes import Node, integers, part, real
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import ops, ov


@dataclass(frozen=True)
class Angles:
    """They are the inputs `rope_cos.<name>` and `rope_sin.<name>`, [T, num_dims / 2], doubled to
    [T, 1, num_dims].
    """

    cos: Node
    sin: Node
    num_dims: int


def angles_input(graph: PagedGraph, name: str, num_dims: int) -> Angles:
    halves = (
        graph.input(f"rope_{kind}.{name}", [-1, num_dims // 2], ov.Type.f32)
        for kind in ("cos", "sin")
    )
    cos, sin = (ops.unsqueeze(ops.concat([half, half], -1), integers(1)) for half in halves)
    return Angles(cos, sin, num_dims)


def rotate(heads: Node, angles: Angles, head_dim: int) -> Node:
    """Turns the first `angles.num_dims` of [T, heads, head_dim], whose halves are the two
    coordinates.
    """
    num_dims = angles.num_dims
    if num_dims < head_dim:
        turned = rotate(part(heads, 0, num_dims, 2), angles, num_dims)
        return ops.concat([turned, part(heads, num_dims, 2**31 - 1, 2)], -1)
    first, second = part(heads, 0, num_dims // 2, 2), part(heads, num_dims // 2, 2**31 - 1, 2)
    turned = ops.concat([ops.multiply(second, real(-1.0)), first], -1)
    return ops.add(ops.multiply(heads, angles.cos), ops.multiply(turned, angles.sin))
