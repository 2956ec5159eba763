"""Compares products that a graph multiplies by a number with operations that contain the number."""

from collections.abc import Callable

import numpy as np
import pytest

from ouzel.backends.openvino.graph.nodes import Node, real
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.kernels.fusion import fuse_products
from ouzel.backends.openvino.kernels.products import EMBEDDING, LINEAR
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.cells import pack_encoding
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import Matrix
from tests.kernels.library import Floats, make_matrix, needs_library

pytestmark = needs_library

HIDDEN = 128
INT4 = Encoding("i4", "f32", group_size=64)

Build = Callable[[PagedGraph, Matrix], Node]  # makes rows [T, HIDDEN]


def embed(graph: PagedGraph, matrix: Matrix) -> Node:
    return graph.embed(matrix, graph.token_ids)


def bias() -> Floats:
    return np.random.default_rng(2).standard_normal(HIDDEN).astype(np.float32)


def scaled_product(graph: PagedGraph, matrix: Matrix) -> Node:
    return ops.multiply(graph.product(embed(graph, matrix), matrix, bias()), real(-0.3))


def scaled_on_the_left(graph: PagedGraph, matrix: Matrix) -> Node:
    return ops.multiply(real(-0.3), graph.product(embed(graph, matrix), matrix))


def scaled_embedding(graph: PagedGraph, matrix: Matrix) -> Node:
    return ops.multiply(embed(graph, matrix), real(11.3))


def scaled_by_columns(graph: PagedGraph, matrix: Matrix) -> Node:
    return ops.multiply(embed(graph, matrix), graph.array(bias()))


def scaled_with_another_reader(graph: PagedGraph, matrix: Matrix) -> Node:
    rows = embed(graph, matrix)
    return ops.subtract(ops.multiply(rows, real(0.5)), rows)


def scaled_with_another_rank(graph: PagedGraph, matrix: Matrix) -> Node:
    number = ops.constant(np.full((1, 1, 1), 0.5, np.float32))
    return ops.multiply(embed(graph, matrix), number)


def fuse(build: Build) -> tuple[Floats, Floats, set[str]]:
    """Returns the rows before and after the change, and the types of the operations after it."""
    packed = make_matrix(HIDDEN, HIDDEN, INT4, np.random.default_rng(0))
    graph = PagedGraph()
    matrix = Matrix(pack_encoding(INT4), packed.weights.shape, packed.parts)
    model = ov.Model([build(graph, matrix)], [graph.token_ids], "scaled")
    fused = model.clone()
    fuse_products(fused)
    rows = []
    for each in (model, fused):
        compiled = ov.Core().compile_model(each, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        rows.append(np.array(compiled([np.array([3, 0, 127, 8], np.int64)])[0]))
    names = {node.get_type_name() for node in fused.get_ops()}
    return rows[0], rows[1], names - {"Parameter", "Constant", "Result"}


@pytest.mark.parametrize(
    ("build", "operations"),
    [
        (scaled_product, {EMBEDDING, LINEAR}),
        (scaled_on_the_left, {EMBEDDING, LINEAR}),
        (scaled_embedding, {EMBEDDING}),
    ],
)
def test_a_number_becomes_a_part_of_the_matrix(build: Build, operations: set[str]) -> None:
    exact, found, names = fuse(build)
    assert names == operations
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize(
    "build", [scaled_by_columns, scaled_with_another_reader, scaled_with_another_rank]
)
def test_other_factors_stay_in_the_graph(build: Build) -> None:
    exact, found, names = fuse(build)
    assert "Multiply" in names
    assert found.shape == exact.shape and np.array_equal(found, exact)
