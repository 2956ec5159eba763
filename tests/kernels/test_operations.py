"""Runs the operations in graphs, and lets them refuse arrays that do not fit."""

import ctypes
from collections.abc import Sequence
from typing import Any  # Any: attributes

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.kernels.gates import Gate
from ouzel.backends.openvino.kernels.library import Kernels, find_kernels
from ouzel.backends.openvino.kernels.products import EMBEDDING, EXPERTS, FEED_FORWARD, LINEAR
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.encodings import Encoding
from tests.kernels.library import Floats, PackedMatrix, load, make_matrix, needs_library

pytestmark = needs_library

HIDDEN, INNER = 128, 96
EPSILON = 1e-6
INT4, UINT4 = Encoding("i4", "f32", group_size=64), Encoding("u4", "f32", "u8", 32)
LINEAR_OPTIONS: dict[str, Any] = {"epsilon": -1.0, "has_residual": False, "may_be_wide": True}


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    found = find_kernels()
    assert isinstance(found, Kernels), found
    return found


@pytest.fixture(scope="module")
def matrix() -> PackedMatrix:
    return make_matrix(70, HIDDEN, INT4, np.random.default_rng(0))


def attributes(*matrices: PackedMatrix, has_bias: bool = False) -> dict[str, Any]:
    return {
        "outputs": [each.outputs for each in matrices],
        "inputs": [each.inputs for each in matrices],
        "bits": [each.bits for each in matrices],
        "scales": [each.scales for each in matrices],
        "has_offsets": [int(each.has_offsets) for each in matrices],
        "tables": [each.table for each in matrices],
        "has_bias": [int(has_bias)] * len(matrices),
    }


def arrays(*matrices: PackedMatrix) -> list[ov.Output]:
    found = []
    for each in matrices:
        factors = each.parts["factors"].reshape(-1)[: each.outputs]
        found += [constant(each.parts["values"].reshape(-1)), constant(factors)]
    return found


def constant(values: NDArray[np.generic]) -> ov.Output:
    return ops.constant(values).output(0)


def parameter(*shape: int) -> ov.Node:
    return ops.parameter(list(shape), ov.Type.f32)


def run(
    node: ov.Node, parameters: Sequence[ov.Node], *values: NDArray[np.generic]
) -> list[NDArray[np.float32]]:
    results = [ops.result(output) for output in node.outputs()]
    compiled = ov.Core().compile_model(ov.Model(results, list(parameters), "one"), "CPU")
    found = compiled(list(values))
    return [np.array(found[index]) for index in range(len(results))]


def random_rows(*shape: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def normalise(rows: Floats, weight: Floats) -> Floats:
    mean = np.mean(rows.astype(np.float64) ** 2, axis=-1, keepdims=True)
    normed: Floats = (rows / np.sqrt(mean + EPSILON) * weight).astype(np.float32)
    return normed


def relative_error(found: NDArray[np.float32], exact: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("shape", [(1, 128), (5, 128), (2, 3, 128), (0, 128), (4, 1, 1, 128)])
def test_a_product_keeps_the_dimensions_of_its_rows(
    kernels: Kernels, matrix: PackedMatrix, shape: tuple[int, ...]
) -> None:
    rows = parameter(*[-1] * (len(shape) - 1), HIDDEN)
    node = kernels.factory.create(
        LINEAR, [rows.output(0), *arrays(matrix)], attributes(matrix) | LINEAR_OPTIONS
    )
    values = random_rows(*shape)
    [products] = run(node, [rows], values)
    assert products.shape == (*shape[:-1], 70)
    exact = matrix.quantise(values.reshape(-1, HIDDEN)) @ matrix.weights.T
    np.testing.assert_allclose(products.reshape(-1, 70), exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_several_products_of_normalised_rows(kernels: Kernels, count: int) -> None:
    random = np.random.default_rng(2)
    matrices = [make_matrix(size, HIDDEN, INT4, random) for size in (64, 33, 1)]
    weight = random.standard_normal(HIDDEN).astype(np.float32)
    rows, residual = parameter(-1, HIDDEN), parameter(-1, 64)
    node = kernels.factory.create(
        LINEAR,
        [rows.output(0), constant(weight), residual.output(0), *arrays(*matrices)],
        attributes(*matrices) | {"epsilon": EPSILON, "has_residual": True, "may_be_wide": False},
    )
    values, added = random_rows(count, HIDDEN), random_rows(count, 64, seed=3)
    found = run(node, [rows, residual], values, added)
    normed = matrices[0].quantise(normalise(values, weight))
    for index, (products, each) in enumerate(zip(found, matrices, strict=True)):
        exact = normed @ each.weights.T + (added if index == 0 else 0)
        assert products.shape == (count, each.outputs)
        assert relative_error(products, exact) < 0.01


def turn(heads: Floats, cos: Floats, sin: Floats) -> Floats:
    first, second = np.split(heads, 2, axis=-1)
    cos, sin = cos[:, None], sin[:, None]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("has_norm", [False, True])
@pytest.mark.parametrize("turned_size", [32, 18])
def test_heads_are_normalised_and_turned(
    kernels: Kernels, count: int, has_norm: bool, turned_size: int
) -> None:
    random, size = np.random.default_rng(8), 32
    matrices = [make_matrix(heads * size, HIDDEN, INT4, random) for heads in (3, 1, 2)]
    rows, *angles = (parameter(-1, each) for each in (HIDDEN, turned_size // 2, turned_size // 2))
    weights = [random.standard_normal(size).astype(np.float32) for _ in range(2)] * has_norm
    node = kernels.factory.create(
        LINEAR,
        [
            *(each.output(0) for each in (rows, *angles)),
            *map(constant, weights),
            *arrays(*matrices),
        ],
        attributes(*matrices)
        | LINEAR_OPTIONS
        | {"head_size": size, "turned_size": turned_size, "num_turned": 2}
        | {"head_epsilon": EPSILON if has_norm else -1.0},
    )
    values = random_rows(count, HIDDEN)
    cos, sin = (random_rows(count, turned_size // 2, seed=seed) for seed in (10, 11))
    found = run(node, [rows, *angles], values, cos, sin)
    for index, (products, each) in enumerate(zip(found, matrices, strict=True)):
        heads = (matrices[index].quantise(values) @ each.weights.T).astype(np.float32)
        heads = heads.reshape(count, -1, size)
        if index < 2:
            heads = normalise(heads, weights[index]) if has_norm else heads
            turned = turn(heads[..., :turned_size], cos, sin)
            heads = np.concatenate([turned, heads[..., turned_size:]], axis=-1)
        np.testing.assert_allclose(
            products, heads.reshape(count, -1), rtol=0, atol=1e-5 * abs(heads).max()
        )


@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("turns", [False, True])
def test_the_rows_of_products_are_normalised(kernels: Kernels, count: int, turns: bool) -> None:
    random, size = np.random.default_rng(16), 32
    matrices = [make_matrix(heads * size, HIDDEN, INT4, random) for heads in (3, 1, 2)]
    weights = [random.standard_normal(each.outputs).astype(np.float32) for each in matrices[:2]]
    inputs, values = [parameter(-1, HIDDEN)], [random_rows(count, HIDDEN)]
    options = LINEAR_OPTIONS | {"num_normed": 2, "result_epsilon": EPSILON}
    if turns:
        options |= {"head_size": size, "turned_size": size, "num_turned": 2}
        inputs += [parameter(-1, size // 2), parameter(-1, size // 2)]
        values += [random_rows(count, size // 2, seed=seed) for seed in (10, 11)]
    else:
        options["has_residual"] = True
        inputs.append(parameter(-1, 3 * size))
        values.append(random_rows(count, 3 * size, seed=3))
    node = kernels.factory.create(
        LINEAR,
        [
            *(each.output(0) for each in inputs),
            *map(constant, weights),
            *arrays(*matrices),
        ],
        attributes(*matrices) | options,
    )
    found = run(node, inputs, *values)
    for index, (products, each) in enumerate(zip(found, matrices, strict=True)):
        exact = (each.quantise(values[0]) @ each.weights.T).astype(np.float32)
        exact = normalise(exact, weights[index]) if index < 2 else exact
        exact = exact + values[1] if index == 0 and not turns else exact
        if index < 2 and turns:
            exact = turn(exact.reshape(count, -1, size), values[1], values[2])
        np.testing.assert_allclose(
            products, exact.reshape(count, -1), rtol=0, atol=1e-5 * abs(exact).max()
        )


@pytest.mark.parametrize("count", [1, 3, 8, 40, 130])
@pytest.mark.parametrize("has_projection", [False, True])
@pytest.mark.parametrize(("is_before", "is_after"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("encoding", [INT4, UINT4], ids=str)
def test_the_feed_forward_half_of_a_layer(
    kernels: Kernels,
    *,
    count: int,
    has_projection: bool,
    is_before: bool,
    is_after: bool,
    encoding: Encoding,
) -> None:
    random = np.random.default_rng(4)
    inner = INNER if encoding is UINT4 else 192
    gate, up = (make_matrix(inner, HIDDEN, encoding, random) for _ in range(2))
    projection, down = (make_matrix(HIDDEN, size, encoding, random) for size in (64, inner))
    weights = random.standard_normal((3, HIDDEN)).astype(np.float32)
    has_norms = (is_after and has_projection, is_before, is_after)
    names = ("projected_epsilon", "epsilon", "result_epsilon")
    epsilons = {
        name: EPSILON if is_there else -1.0 for name, is_there in zip(names, has_norms, strict=True)
    }

    def norm(rows: NDArray[np.float64], number: int) -> NDArray[np.float64]:
        if not has_norms[number]:
            return rows
        return normalise(rows.astype(np.float32), weights[number]).astype(np.float64)

    matrices = [*([projection] if has_projection else []), gate, up, down]
    rows = [parameter(-1, HIDDEN)]
    values = [random_rows(count, HIDDEN)]
    x = values[0].astype(np.float64)
    if has_projection:
        rows.insert(0, parameter(-1, 64))
        values.insert(0, random_rows(count, 64, seed=5))
        x += norm(projection.quantise(values[0]) @ projection.weights.T, 0)
    node = kernels.factory.create(
        FEED_FORWARD,
        [
            *(each.output(0) for each in rows),
            *(constant(weights[number]) for number in range(3) if has_norms[number]),
            *arrays(*matrices),
        ],
        attributes(*matrices) | epsilons | {"linear": 1.0, "cubic": 0.0, "may_be_wide": False},
    )
    [found] = run(node, rows, *values)
    normed = norm(x, 1)
    gates = normed @ gate.weights.T
    exact = x + norm((gates / (1 + np.exp(-gates)) * (normed @ up.weights.T)) @ down.weights.T, 2)
    assert relative_error(found, exact) < 0.03
    alone = run(node, rows, *(each[:1] for each in values))[0]
    assert np.array_equal(found[:1], alone), "a row has the same bits among other rows"


EXPERT_GATES = (Gate(1.0), Gate(1.702, limit=1.0, up_offset=1.0))


def expert_attributes(*matrices: PackedMatrix, gate: Gate = EXPERT_GATES[0]) -> dict[str, Any]:
    """Returns the attributes of five experts."""
    own = {"experts": 5, "has_residual": False, "may_be_wide": False}
    return attributes(*matrices) | gate.attributes | own


def expert_matrices(random: np.random.Generator) -> tuple[PackedMatrix, PackedMatrix]:
    return (
        make_matrix(5 * 2 * INNER, HIDDEN, INT4, random),
        make_matrix(5 * HIDDEN, INNER, UINT4, random),
    )


@pytest.mark.parametrize("count", [1, 3, 8, 40, 200])
@pytest.mark.parametrize("has_residual", [False, True])
@pytest.mark.parametrize("gate", EXPERT_GATES)
def test_a_mixture_of_experts(kernels: Kernels, count: int, has_residual: bool, gate: Gate) -> None:
    random = np.random.default_rng(11)
    gate_up, down = expert_matrices(random)
    inputs = [parameter(-1, HIDDEN), ops.parameter([-1, 2], ov.Type.i32), parameter(-1, 2)]
    values: list[NDArray[np.generic]] = [
        random_rows(count, HIDDEN) / 4,
        random.integers(0, 4, (count, 2), np.int32),  # no row chooses the last expert
        random_rows(count, 2, seed=12),
    ]
    if has_residual:
        inputs.append(parameter(-1, HIDDEN))
        values.append(random_rows(count, HIDDEN, seed=13))
    node = kernels.factory.create(
        EXPERTS,
        [*(each.output(0) for each in inputs), *arrays(gate_up, down)],
        expert_attributes(gate_up, down, gate=gate) | {"has_residual": has_residual},
    )
    [found] = run(node, inputs, *values)
    rows, chosen, weights = values[0].astype(np.float64), values[1], values[2]
    exact = values[3].astype(np.float64) if has_residual else np.zeros((count, HIDDEN))
    halves = (rows @ gate_up.weights.T).reshape(count, 5, 2, INNER)
    for row in range(count):
        for expert, weight in zip(chosen[row], weights[row], strict=True):
            x, up = np.minimum(halves[row, expert], gate.limit)
            up = np.maximum(up, -gate.limit) + gate.up_offset
            inner = x / (1 + np.exp(-gate.linear * x)) * up
            exact[row] += weight * (down.weights[expert * HIDDEN :][:HIDDEN] @ inner)
    assert relative_error(found, exact) < 0.03
    alone = run(node, inputs, *(each[:1] for each in values))[0]
    assert np.array_equal(found[:1], alone), "a row has the same bits among other rows"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"experts": 4}, "do not fit 4 experts"),
        ({"experts": 0}, "do not fit 0 experts"),
        ({"experts": 2**40}, "do not fit"),
        ({"limit": 0.0}, "limit must be above 0"),
        ({"has_residual": True}, "cells must be u8"),
        ({"bits": [4, 8]}, "cells must be u8"),
    ],
)
def test_experts_that_do_not_fit_are_refused(
    kernels: Kernels, wrong: dict[str, object], message: str
) -> None:
    gate_up, down = expert_matrices(np.random.default_rng(14))
    inputs = [parameter(-1, HIDDEN), ops.parameter([-1, 2], ov.Type.i32), parameter(-1, 2)]
    with pytest.raises(RuntimeError, match=message):
        kernels.factory.create(
            EXPERTS,
            [*(each.output(0) for each in inputs), *arrays(gate_up, down)],
            expert_attributes(gate_up, down) | wrong,
        )


def test_an_expert_that_there_is_not_is_refused(kernels: Kernels) -> None:
    gate_up, down = expert_matrices(np.random.default_rng(15))
    inputs = [parameter(-1, HIDDEN), ops.parameter([-1, 2], ov.Type.i32), parameter(-1, 2)]
    node = kernels.factory.create(
        EXPERTS,
        [*(each.output(0) for each in inputs), *arrays(gate_up, down)],
        expert_attributes(gate_up, down),
    )
    rows, weights = random_rows(1, HIDDEN), random_rows(1, 2)
    for number in (-1, 5):
        with pytest.raises(RuntimeError, match="there is no such expert"):
            run(node, inputs, rows, np.array([[0, number]], np.int32), weights)


def test_gelu_with_tanh(kernels: Kernels) -> None:
    random = np.random.default_rng(6)
    gate, up = (make_matrix(64, HIDDEN, INT4, random) for _ in range(2))
    down = make_matrix(HIDDEN, 64, INT4, random)
    rows = parameter(-1, HIDDEN)
    ones = np.ones(HIDDEN, np.float32)
    options = {"epsilon": EPSILON, "linear": 1.5957691216057308, "cubic": 0.0713548162726009}
    node = kernels.factory.create(
        FEED_FORWARD,
        [rows.output(0), constant(ones), *arrays(gate, up, down)],
        attributes(gate, up, down) | options | {"may_be_wide": False},
    )
    values = random_rows(5, HIDDEN)
    [found] = run(node, [rows], values)
    normed = normalise(values, ones).astype(np.float64)
    z = normed @ gate.weights.T
    gates = 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
    exact = values + (gates * (normed @ up.weights.T)) @ down.weights.T
    assert relative_error(found, exact) < 0.03


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_rows_of_a_matrix_are_exact(
    kernels: Kernels, matrix: PackedMatrix, dtype: type[np.generic]
) -> None:
    numbers = ops.parameter([-1], ov.Type(dtype))
    node = kernels.factory.create(
        EMBEDDING, [numbers.output(0), *arrays(matrix)], attributes(matrix)
    )
    wanted = [0, 69, 31, 32, 5, 5]
    [rows] = run(node, [numbers], np.array(wanted, dtype))
    assert np.array_equal(rows, matrix.weights[wanted])


def test_a_number_out_of_range_gives_zeros(kernels: Kernels, matrix: PackedMatrix) -> None:
    numbers = ops.parameter([-1], ov.Type.i64)
    node = kernels.factory.create(
        EMBEDDING, [numbers.output(0), *arrays(matrix)], attributes(matrix)
    )
    [rows] = run(node, [numbers], np.array([-1, 70, 2**31 - 1, 3], np.int64))
    assert not rows[:3].any()
    assert np.array_equal(rows[3], matrix.weights[3])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"outputs": [71]}, "factors must be f32"),
        ({"outputs": [129]}, "cells must be u8"),
        ({"inputs": [192]}, "cells must be u8"),
        ({"scales": [2]}, "cells must be u8"),
        ({"has_offsets": [1]}, "cells must be u8"),
        ({"has_bias": [1]}, "lacks the input bias"),
        ({"scales": [3]}, "invalid sizes"),
        ({"scales": [8]}, "invalid sizes"),
        ({"bits": [8]}, "cells must be u8"),
        ({"bits": [5]}, "invalid sizes"),
        ({"bits": [6]}, "invalid sizes"),  # there is no kernel for one scale
        ({"bits": [2**32 + 4]}, "invalid sizes"),
        ({"bits": []}, "given attributes of 0"),
        ({"tables": [1]}, "invalid sizes"),  # there is no kernel for one scale
        ({"tables": [3]}, "invalid sizes"),
        ({"tables": [-1]}, "invalid sizes"),
        ({"outputs": [0]}, "invalid sizes"),
        ({"outputs": [-5]}, "invalid sizes"),
        ({"inputs": [2**40]}, "invalid sizes"),
        ({"inputs": [64]}, "cells must be u8"),
        ({"inputs": []}, "given attributes of 0"),
        ({"outputs": []}, "needs a matrix"),
        ({"outputs": [70, 70]}, "given attributes of"),
        ({"epsilon": 1e-6}, "cells must be u8|norm must be f32"),
        ({"has_residual": True}, "cells must be u8"),
        ({"num_normed": 1}, "result_epsilon must be 0 or more"),
        ({"num_normed": 2, "result_epsilon": 0.0}, "normalises 2 of 1 products"),
        ({"num_normed": -1}, "normalises -1 of 1 products"),
        ({"num_normed": 1, "result_epsilon": 0.0}, "norm of a product must be f32|cells must be"),
        (
            {"num_normed": 1, "result_epsilon": 0.0, "head_epsilon": 0.0},
            "norm of their rows or of their heads",
        ),
        ({"num_turned": 2}, "turns 2 of 1 products"),
        ({"num_turned": 1}, "head_size must be a multiple of 32"),
        ({"num_turned": 1, "head_size": 32, "turned_size": 34}, "turned_size must be even"),
        ({"num_turned": 1, "head_size": 32, "turned_size": 3}, "turned_size must be even"),
        ({"num_turned": 1, "head_size": 32, "turned_size": -2}, "turned_size must be even"),
        ({"num_turned": 1, "head_size": 32}, "outputs must be heads of 32"),
    ],
)
def test_a_matrix_with_other_lengths_is_refused(
    kernels: Kernels, matrix: PackedMatrix, wrong: dict[str, object], message: str
) -> None:
    rows = parameter(-1, HIDDEN).output(0)
    with pytest.raises(RuntimeError, match=message):
        kernels.factory.create(
            LINEAR, [rows, *arrays(matrix)], attributes(matrix) | LINEAR_OPTIONS | wrong
        )


def test_matrices_that_do_not_fit_each_other_are_refused(kernels: Kernels) -> None:
    random = np.random.default_rng(7)
    gate, down = make_matrix(64, HIDDEN, INT4, random), make_matrix(HIDDEN, 64, INT4, random)
    other = make_matrix(96, HIDDEN, INT4, random)
    inputs = [parameter(-1, HIDDEN).output(0), constant(np.ones(HIDDEN, np.float32))]
    options = {"epsilon": EPSILON, "linear": 1.0, "cubic": 0.0, "may_be_wide": False}
    for matrices in ((gate, other, down), (other, gate, down), (gate, gate, gate)):
        with pytest.raises(RuntimeError, match="sizes of the matrices do not fit"):
            kernels.factory.create(
                FEED_FORWARD, [*inputs, *arrays(*matrices)], attributes(*matrices) | options
            )
    right = (gate, gate, down)
    for wrong, message in (
        ({"projected_epsilon": EPSILON}, "there is no projection"),
        ({"result_epsilon": EPSILON}, "cells must be u8"),
        ({"epsilon": -1.0}, "cells must be u8"),
    ):
        with pytest.raises(RuntimeError, match=message):
            kernels.factory.create(
                FEED_FORWARD, [*inputs, *arrays(*right)], attributes(*right) | options | wrong
            )


def test_rows_of_another_length_or_type_are_refused(kernels: Kernels, matrix: PackedMatrix) -> None:
    for rows, message in (
        (parameter(-1, 127), "rows must end with 128 columns"),
        (ops.parameter([-1, HIDDEN], ov.Type.f16), "rows must be f32"),
        (parameter(), "rows must end with 128 columns"),
    ):
        with pytest.raises(RuntimeError, match=message):
            kernels.factory.create(
                LINEAR, [rows.output(0), *arrays(matrix)], attributes(matrix) | LINEAR_OPTIONS
            )


def test_rows_that_turn_out_to_have_another_length_are_refused(
    kernels: Kernels, matrix: PackedMatrix
) -> None:
    rows = parameter(-1, -1)
    node = kernels.factory.create(
        LINEAR, [rows.output(0), *arrays(matrix)], attributes(matrix) | LINEAR_OPTIONS
    )
    with pytest.raises(RuntimeError, match="rows must"):
        run(node, [rows], np.zeros((3, 100), np.float32))


def test_a_residual_of_other_rows_is_refused(kernels: Kernels, matrix: PackedMatrix) -> None:
    rows, residual = parameter(-1, HIDDEN), parameter(-1, 70)
    node = kernels.factory.create(
        LINEAR,
        [rows.output(0), residual.output(0), *arrays(matrix)],
        attributes(matrix) | LINEAR_OPTIONS | {"has_residual": True},
    )
    with pytest.raises(RuntimeError, match="as many rows"):
        run(node, [rows, residual], random_rows(3, HIDDEN), random_rows(2, 70))


def test_the_library_refuses_wrong_sizes(matrix: PackedMatrix) -> None:
    library, nothing = load(), ctypes.c_void_p()
    values = matrix.parts["values"]
    sizes = (b"avx2", 70, HIDDEN, 4, 1, 0, 0, values.ctypes.data, values.nbytes - 1)
    assert library.ouzel_kernels_multiply(*sizes, *(nothing,) * 3, 1, 0, nothing) == 2
    assert library.ouzel_kernels_bytes(0, HIDDEN, 4, 1, 0, 0) == 0
    assert library.ouzel_kernels_bytes(70, 2**40, 4, 1, 0, 0) == 0
    assert library.ouzel_kernels_bytes(70, HIDDEN, 5, 1, 0, 0) == 0
