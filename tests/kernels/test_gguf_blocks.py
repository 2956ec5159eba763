"""The kernels hold the values of GGUF's blocks."""

import numpy as np
import pytest

from ouzel.backends.openvino.weights.cells import fits_cells, pack_encoding
from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.gguf import READERS
from ouzel.gguf.block_types import BLOCK_TYPES
from tests.backends.test_openvino_gguf import random_blocks
from tests.kernels.library import needs_library, pack_matrix

pytestmark = needs_library

COLUMNS = 256
TOLERANCE = 2**-8  # scales and offsets are rounded to f16


# Their levels need eight bits and their groups have 16 values; no cell has both.
WITHOUT_CELLS = {"IQ2_XS", "IQ2_S"}


def test_the_kernels_hold_all_other_blocks() -> None:
    fit = {kind for kind, reader in READERS.items() if fits_cells(reader.encoding, COLUMNS)}
    assert READERS.keys() - fit == WITHOUT_CELLS


@pytest.mark.parametrize("kind", [kind for kind in READERS if kind not in WITHOUT_CELLS])
def test_a_product_by_the_unit_matrix_gives_the_weights(kind: str) -> None:
    reader = READERS[kind]
    [block_type] = [each for each in BLOCK_TYPES.values() if each.name == kind]
    _, content = random_blocks(kind, np.random.default_rng(0))
    shape = (-1, COLUMNS // block_type.num_values, block_type.num_bytes)
    blocks = np.frombuffer(content, np.uint8).reshape(shape).copy()
    if kind == "MXFP4":
        blocks[..., 0] = 100 + blocks[..., 0] % 8  # a power of two
    parts = reader.read(blocks)
    weights = decode(reader.encoding, parts)
    matrix = pack_matrix(reader.encoding, parts, weights.astype(np.float64))
    found = matrix.multiply("avx2", np.eye(COLUMNS, dtype=np.float32)).T
    largest = np.abs(weights).max(axis=1, keepdims=True)
    assert (np.abs(found - weights) <= TOLERANCE * largest).all()
    assert pack_encoding(reader.encoding).bits_per_value(COLUMNS) <= 8.5
