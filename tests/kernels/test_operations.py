"""The operations in graphs: their results, and the models that they refuse."""

import ctypes

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.kernels.library import Kernels, find_kernels
from ouzel.backends.openvino.kernels.products import EMBEDDING, LINEAR
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.encodings import Encoding
from tests.kernels.library import PackedMatrix, load, make_matrix, needs_library

pytestmark = needs_library

ATTRIBUTES = {"outputs": 70, "inputs": 128, "scales": 1, "has_offsets": False}


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    found = find_kernels()
    assert isinstance(found, Kernels), found
    return found


@pytest.fixture(scope="module")
def matrix() -> PackedMatrix:
    encoding = Encoding("i4", "f32", group_size=64)
    return make_matrix(70, 128, encoding, np.random.default_rng(0))


def constants(matrix: PackedMatrix) -> list[ov.Output]:
    values = ops.constant(matrix.parts["values"].reshape(-1))
    factors = ops.constant(matrix.parts["factors"].reshape(-1)[: matrix.outputs])
    return [values.output(0), factors.output(0)]


def run(node: ov.Node, parameter: ov.Node, values: NDArray[np.generic]) -> NDArray[np.float32]:
    model = ov.Model([ops.result(node)], [parameter], "one")
    results: NDArray[np.float32] = ov.Core().compile_model(model, "CPU")(values)[0]
    return results


@pytest.mark.parametrize("shape", [(1, 128), (5, 128), (2, 3, 128), (0, 128), (4, 1, 1, 128)])
def test_a_product_keeps_the_dimensions_of_its_rows(
    kernels: Kernels, matrix: PackedMatrix, shape: tuple[int, ...]
) -> None:
    rows = ops.parameter([-1] * (len(shape) - 1) + [128], ov.Type.f32)
    node = kernels.factory.create(
        LINEAR, [rows.output(0), *constants(matrix)], ATTRIBUTES | {"may_be_wide": True}
    )
    values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    products = run(node, rows, values)
    assert products.shape == (*shape[:-1], 70)
    exact = matrix.quantise(values.reshape(-1, 128)) @ matrix.weights.T
    np.testing.assert_allclose(products.reshape(-1, 70), exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_rows_of_a_matrix_are_exact(
    kernels: Kernels, matrix: PackedMatrix, dtype: type[np.generic]
) -> None:
    numbers = ops.parameter([-1], ov.Type(dtype))
    node = kernels.factory.create(EMBEDDING, [numbers.output(0), *constants(matrix)], ATTRIBUTES)
    wanted = [0, 69, 31, 32, 5, 5]
    assert np.array_equal(run(node, numbers, np.array(wanted, dtype)), matrix.weights[wanted])


def test_a_number_out_of_range_gives_zeros(kernels: Kernels, matrix: PackedMatrix) -> None:
    numbers = ops.parameter([-1], ov.Type.i64)
    node = kernels.factory.create(EMBEDDING, [numbers.output(0), *constants(matrix)], ATTRIBUTES)
    rows = run(node, numbers, np.array([-1, 70, 2**31 - 1, 3], np.int64))
    assert not rows[:3].any()
    assert np.array_equal(rows[3], matrix.weights[3])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"outputs": 71}, "cells must be u8|factors must be f32"),
        ({"outputs": 129}, "cells must be u8"),
        ({"inputs": 192}, "cells must be u8"),
        ({"scales": 2}, "cells must be u8"),
        ({"has_offsets": True}, "cells must be u8"),
        ({"scales": 3}, "invalid sizes"),
        ({"outputs": 0}, "invalid sizes"),
        ({"outputs": -5}, "invalid sizes"),
        ({"inputs": 2**40}, "invalid sizes"),
        ({"inputs": 64}, "cells must be u8"),
    ],
)
def test_a_matrix_with_other_lengths_is_refused(
    kernels: Kernels, matrix: PackedMatrix, attributes: dict[str, object], message: str
) -> None:
    rows = ops.parameter([-1, 128], ov.Type.f32).output(0)
    with pytest.raises(RuntimeError, match=message):
        kernels.factory.create(LINEAR, [rows, *constants(matrix)], ATTRIBUTES | attributes)


def test_rows_of_another_length_or_type_are_refused(kernels: Kernels, matrix: PackedMatrix) -> None:
    for parameter, message in (
        (ops.parameter([-1, 127], ov.Type.f32), "rows must end with 128 columns"),
        (ops.parameter([-1, 128], ov.Type.f16), "rows must be f32"),
        (ops.parameter([], ov.Type.f32), "rows must end with 128 columns"),
    ):
        with pytest.raises(RuntimeError, match=message):
            kernels.factory.create(
                LINEAR, [parameter.output(0), *constants(matrix)], dict(ATTRIBUTES)
            )


def test_rows_that_turn_out_to_have_another_length_are_refused(
    kernels: Kernels, matrix: PackedMatrix
) -> None:
    rows = ops.parameter([-1, -1], ov.Type.f32)
    node = kernels.factory.create(LINEAR, [rows.output(0), *constants(matrix)], dict(ATTRIBUTES))
    with pytest.raises(RuntimeError, match="rows must"):
        run(node, rows, np.zeros((3, 100), np.float32))


def test_a_bias_of_another_length_is_refused(kernels: Kernels, matrix: PackedMatrix) -> None:
    rows = ops.parameter([-1, 128], ov.Type.f32).output(0)
    bias = ops.constant(np.zeros(71, np.float32)).output(0)
    with pytest.raises(RuntimeError, match="bias must be f32"):
        kernels.factory.create(LINEAR, [rows, *constants(matrix), bias], dict(ATTRIBUTES))


def test_the_library_refuses_wrong_sizes(matrix: PackedMatrix) -> None:
    library, nothing = load(), ctypes.c_void_p()
    values = matrix.parts["values"]
    sizes = (b"avx2", 70, 128, 1, 0, values.ctypes.data, values.nbytes - 1)
    assert library.ouzel_kernels_multiply(*sizes, *(nothing,) * 3, 1, 0, nothing) == 2
    assert library.ouzel_kernels_bytes(0, 128, 1, 0) == 0
    assert library.ouzel_kernels_bytes(70, 2**40, 1, 0) == 0
