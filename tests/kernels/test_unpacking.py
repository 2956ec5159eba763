"""Compares the unpacked rows of packed matrices with the numbers that were packed."""

import numpy as np
import pytest

from ouzel.backends.openvino.weights.cells import pack_encoding
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import Matrix
from ouzel.backends.openvino.weights.unpacking import decode_pieces, decode_rows
from tests.kernels.library import make_matrix
from tests.kernels.test_products import ENCODINGS, SHAPES


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_unpacked_rows_are_the_packed_numbers(encoding: Encoding) -> None:
    random = np.random.default_rng(0)
    for shape in SHAPES:
        packed = make_matrix(*shape, encoding, random)
        matrix = Matrix(pack_encoding(encoding), shape, packed.parts)
        tolerance = 2e-4 * np.abs(packed.weights).max()  # offsets are f16
        rows = np.concatenate([rows for _, rows in decode_pieces(matrix)])
        np.testing.assert_allclose(rows, packed.weights, rtol=0, atol=tolerance)
        begin = (shape[0] - 1) // 32 * 32
        np.testing.assert_array_equal(decode_rows(matrix, begin, shape[0]), rows[begin:])
