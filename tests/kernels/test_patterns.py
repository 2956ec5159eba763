"""Compares heads that a graph normalises and turns with the same heads of joined operations."""

from collections.abc import Callable

import numpy as np
import pytest

from ouzel.backends.openvino.graph.nodes import Node, merge_heads, part, split_heads
from ouzel.backends.openvino.graph.norms import Norm, normalise
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.graph.rotation import Angles, angles_input, rotate
from ouzel.backends.openvino.kernels.fusion import fuse_products
from ouzel.backends.openvino.kernels.products import LINEAR
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.cells import pack_encoding
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import Array, Matrix
from tests.kernels.library import Floats, make_matrix, needs_library

pytestmark = needs_library

HIDDEN, SIZE, NUM_DIMS = 128, 64, 48
NUM_HEADS = (3, 1)  # heads of queries and of keys
INPUTS = ("rows", "rope_cos.default", "rope_sin.default")
INT4 = Encoding("i4", "f32", group_size=64)

Turn = Callable[[Node, Angles], Node]  # turns heads [T, heads, SIZE]


def turn_first(heads: Node, angles: Angles) -> Node:
    return rotate(heads, angles, SIZE)


def turn_last(heads: Node, angles: Angles) -> Node:
    """Turns the last channels of each head."""
    begin = SIZE - angles.num_dims
    turned = rotate(part(heads, begin, SIZE, 2), angles, angles.num_dims)
    return ops.concat([part(heads, 0, begin, 2), turned], -1)


def move_first(heads: Node, angles: Angles) -> Node:
    """Turns the first channels of each head, and puts them behind the others."""
    turned = rotate(part(heads, 0, angles.num_dims, 2), angles, angles.num_dims)
    return ops.concat([part(heads, angles.num_dims, SIZE, 2), turned], -1)


def repeat_some(heads: Node, angles: Angles) -> Node:
    """Turns the first channels of each head, and repeats some of them in place of the last."""
    turned = rotate(part(heads, 0, angles.num_dims, 2), angles, angles.num_dims)
    begin = 2 * angles.num_dims - SIZE
    return ops.concat([turned, part(heads, begin, angles.num_dims, 2)], -1)


def build_graphs(
    turn: Turn, num_dims: int, *, has_norms: bool = False
) -> tuple[ov.Model, ov.Model, list[Array]]:
    """Builds products of rows by matrices, whose heads are normalised and turned.

    Returns the graph, a copy with joined operations, and the arrays that both point into.
    """
    random = np.random.default_rng(0)
    graph = PagedGraph()
    rows = graph.input("rows", [-1, HIDDEN], ov.Type.f32)
    angles = angles_input(graph, "default", num_dims)
    results = []
    for num_heads in NUM_HEADS:
        matrix = make_matrix(num_heads * SIZE, HIDDEN, INT4, random)
        packed = Matrix(pack_encoding(INT4), matrix.weights.shape, matrix.parts)
        heads = split_heads(graph.product(rows, packed), num_heads, SIZE)
        if has_norms:
            weight = random.standard_normal(SIZE).astype(np.float32)
            heads = ops.multiply(normalise(heads, Norm(1e-6)), graph.array(weight))
        results.append(merge_heads(turn(heads, angles)))
    inputs = [each for each in graph.parameters if each.get_friendly_name() in INPUTS]
    model = ov.Model(results, inputs, "heads")
    fused = model.clone()
    fuse_products(fused)
    return model, fused, graph.arrays


def run(graph: ov.Model, num_dims: int) -> list[Floats]:
    random, count = np.random.default_rng(1), 5
    rows = random.standard_normal((count, HIDDEN), np.float32)
    angles = random.uniform(-4, 4, (count, num_dims // 2)).astype(np.float32)
    compiled = ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled([rows, np.cos(angles), np.sin(angles)])
    return [np.array(found[index]) for index in range(len(NUM_HEADS))]


def assert_agree(graph: ov.Model, fused: ov.Model, num_dims: int) -> None:
    for exact, found in zip(run(graph, num_dims), run(fused, num_dims), strict=True):
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5 * np.abs(exact).max())


def list_operations(graph: ov.Model) -> list[str]:
    passive = {"Parameter", "Constant", "Result"}
    names = [node.get_type_name() for node in graph.get_ops()]
    return sorted(name for name in names if name not in passive)


@pytest.mark.parametrize("has_norms", [False, True])
@pytest.mark.parametrize("num_dims", [SIZE, NUM_DIMS, 20, 2])
def test_rotations_of_the_first_channels_belong_to_the_products(
    num_dims: int, has_norms: bool
) -> None:
    graph, fused, _arrays = build_graphs(turn_first, num_dims, has_norms=has_norms)
    assert list_operations(fused) == [LINEAR]
    assert_agree(graph, fused, num_dims)


@pytest.mark.parametrize("turn", [turn_last, move_first, repeat_some])
def test_other_rotations_stay_in_the_graph(turn: Turn) -> None:
    graph, fused, _arrays = build_graphs(turn, NUM_DIMS)
    others = [name for name in list_operations(graph) if name != LINEAR]
    assert list_operations(fused) == sorted([LINEAR, *others])
    assert_agree(graph, fused, NUM_DIMS)
