"""Rotates queries and keys in a graph by angles from the host (rope.py).

The operations are written so that the CPU plugin fuses them (its concat axes must be -1).
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.nodes import (
    Node,
    integers,
    merge_heads,
    part,
    real,
    split_heads,
)
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import ops, ov


@dataclass(frozen=True)
class Angles:
    """The cosines and sines of a step's angles, [T, 1, num_dims].

    They come from the inputs `rope_cos.<name>` and `rope_sin.<name>`, [T, num_dims / 2], whose
    columns are doubled.
    """

    cos: Node
    sin: Node
    num_dims: int


def angles_input(graph: PagedGraph, name: str, num_dims: int) -> Angles:
    """Adds the inputs for the angles to the graph."""
    halves = (
        graph.input(f"rope_{kind}.{name}", [-1, num_dims // 2], ov.Type.f32)
        for kind in ("cos", "sin")
    )
    cos, sin = (ops.unsqueeze(ops.concat([half, half], -1), integers(1)) for half in halves)
    return Angles(cos, sin, num_dims)


def rotate(heads: Node, angles: Angles, head_dim: int) -> Node:
    """Rotates the first `angles.num_dims` dimensions of [T, heads, head_dim].

    The two halves of these dimensions are the two coordinates.
    """
    num_dims = angles.num_dims
    if num_dims < head_dim:
        turned = rotate(part(heads, 0, num_dims, 2), angles, num_dims)
        return ops.concat([turned, part(heads, num_dims, 2**31 - 1, 2)], -1)
    first, second = part(heads, 0, num_dims // 2, 2), part(heads, num_dims // 2, 2**31 - 1, 2)
    turned = ops.concat([ops.multiply(second, real(-1.0)), first], -1)
    return ops.add(ops.multiply(heads, angles.cos), ops.multiply(turned, angles.sin))


def rotate_rows(rows: Node, num_heads: int, head_dim: int, angles: Angles) -> Node:
    """Rotates the heads of rows [T, heads * head_dim]."""
    return merge_heads(rotate(split_heads(rows, num_heads, head_dim), angles, head_dim))
