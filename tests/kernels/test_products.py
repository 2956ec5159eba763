"""Compares the products of each level with numpy, and bit for bit with other levels."""

import numpy as np
import pytest

from ouzel.backends.openvino.weights.cells import fits_cells
from ouzel.backends.openvino.weights.encodings import MXFP4, Encoding
from tests.kernels.library import make_matrix, needs_library, supported_levels

pytestmark = needs_library

ENCODINGS = (
    Encoding("i4", "f16", group_size=32),
    Encoding("i4", "f32", group_size=64),
    Encoding("i4", "f16", group_size=128),
    Encoding("i4", "f32"),
    Encoding("u4", "f16", "u8", 32),
    Encoding("u4", "f32", "u8", 64),
    Encoding("u4", "f16", "u8", 128),
    Encoding("i4", "f32", group_size=16),
    Encoding("u4", "f32", "u8", 16),
    Encoding("i8", "f16", group_size=32, used_bits=5),
    Encoding("u8", "f16", "u8", 32, used_bits=5),
    Encoding("i8", "f16", group_size=32, used_bits=6),
    Encoding("i8", "f32", group_size=16, used_bits=6),
    Encoding("i8", "f16", group_size=32),
    Encoding("i8", "f32", group_size=64),
    Encoding("i8", "f16", group_size=128),
    Encoding("i8", "f32"),
    Encoding("u8", "f32", "u8"),
    Encoding("u8", "f16", "u8", 32),
    Encoding("i8", "f16", group_size=32, used_bits=4, levels="iq4"),
    MXFP4,
    Encoding("f4e2m1", "f32", group_size=16),
)
SHAPES = ((1, 128), (32, 128), (33, 384), (96, 1024), (70, 640))  # outputs, inputs
NUM_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 25, 33, 127, 140)
# The emulation takes most of the time: every run has its first, full and last tiles.
EMULATED_SHAPES = ((1, 128), (33, 384), (70, 640))
EMULATED_NUM_ROWS = (1, 7, 16, 17, 33, 140)
BF16_ERROR = 2**-8


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_products_are_those_of_numpy(level: str, encoding: Encoding, before_release: bool) -> None:
    random = np.random.default_rng(0)
    has_few = level == "emulated_amx" and not before_release
    for outputs, inputs in EMULATED_SHAPES if has_few else SHAPES:
        matrix = make_matrix(outputs, inputs, encoding, random)
        rows = random.standard_normal((NUM_ROWS[-1], inputs)).astype(np.float32)
        bias = random.standard_normal(outputs).astype(np.float32)
        exact = matrix.quantise(rows) @ matrix.weights.T + bias
        for count in EMULATED_NUM_ROWS if has_few else NUM_ROWS:
            products = matrix.multiply(level, rows[:count], bias)
            np.testing.assert_allclose(
                products, exact[:count], rtol=0, atol=2e-6 * abs(exact).max()
            )


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_a_row_has_the_same_bits_among_any_rows_on_any_level(encoding: Encoding) -> None:
    random = np.random.default_rng(1)
    matrix = make_matrix(70, 640, encoding, random)
    rows = random.standard_normal((NUM_ROWS[-1], 640)).astype(np.float32)
    alone = np.concatenate([matrix.multiply("avx2", row[None]) for row in rows])
    for name in supported_levels():
        for count in NUM_ROWS:
            for first in (0, len(rows) - count):
                some = slice(first, first + count)
                assert np.array_equal(matrix.multiply(name, rows[some]), alone[some]), (name, count)


@pytest.mark.parametrize("inputs", [1, 2, 30, 32, 34, 62, 66, 96, 129, 130])
@pytest.mark.parametrize(
    "encoding", [Encoding("i4", "f32"), Encoding("i8", "f32"), Encoding("u8", "f32", "u8")], ids=str
)
def test_columns_after_the_last_whole_cell(level: str, encoding: Encoding, inputs: int) -> None:
    if not fits_cells(encoding, inputs):
        assert (encoding.values, inputs % 2) == ("i4", 1)
        return
    random = np.random.default_rng(inputs)
    matrix = make_matrix(5, inputs, encoding, random)
    rows = random.standard_normal((9, inputs)).astype(np.float32)
    exact = matrix.quantise(rows) @ matrix.weights.T
    tolerance = 1e-5 if encoding.zeros is None else 1e-3  # offsets are rounded to f16
    for count in (1, 4, 9):
        np.testing.assert_allclose(
            matrix.multiply(level, rows[:count]), exact[:count], rtol=0, atol=tolerance
        )


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_many_rows_may_be_multiplied_in_bf16(
    level: str, encoding: Encoding, before_release: bool
) -> None:
    random = np.random.default_rng(2)
    has_few = level == "emulated_amx" and not before_release
    for outputs, inputs in EMULATED_SHAPES if has_few else SHAPES:
        matrix = make_matrix(outputs, inputs, encoding, random)
        rows = random.standard_normal((133, inputs)).astype(np.float32)
        exact = rows.astype(np.float64) @ matrix.weights.T
        products = matrix.multiply(level, rows, may_be_wide=True)
        is_wide = not np.array_equal(products, matrix.multiply(level, rows))
        assert is_wide == (level in ("amx", "emulated_amx"))
        error = np.linalg.norm(products - exact) / np.linalg.norm(exact)
        assert error < (BF16_ERROR if is_wide else 0.01)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_spoils_its_row_only(level: str, bad: float) -> None:
    random = np.random.default_rng(3)
    matrix = make_matrix(40, 128, ENCODINGS[4], random)
    for count in (1, 3, 8, 16, 33):
        rows = random.standard_normal((count, 128)).astype(np.float32)
        sound = matrix.multiply(level, rows)
        rows[count // 2, 77] = bad
        products = matrix.multiply(level, rows)
        assert np.isnan(products[count // 2]).all()
        others = np.arange(count) != count // 2
        assert np.array_equal(products[others], sound[others])


@pytest.mark.parametrize("size", [0.0, 1e-45, 1e-38, 1e-31, 1e30, 3e38])
def test_rows_of_any_size(level: str, size: float) -> None:
    random = np.random.default_rng(4)
    matrix = make_matrix(40, 128, ENCODINGS[1], random)
    rows = (random.choice([-1.0, 1.0, 0.5], (3, 128)) * size).astype(np.float32)
    exact = rows.astype(np.float64) @ matrix.weights.T if size > 1e-30 else np.zeros((3, 40))
    with np.errstate(over="ignore"):
        limit = np.abs(exact).max() < np.finfo(np.float32).max
    products = matrix.multiply(level, rows)
    if limit:
        np.testing.assert_allclose(products, exact, rtol=0, atol=0.01 * abs(exact).max())
    else:
        assert not np.isfinite(products).all()


def test_a_product_of_no_rows_is_empty(level: str) -> None:
    matrix = make_matrix(40, 128, ENCODINGS[0], np.random.default_rng(5))
    assert matrix.multiply(level, np.empty((0, 128), np.float32)).shape == (0, 40)
