"""Computes the changes of matrices by adapters, and compares copies of matrices with a model's."""

import math
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.adapters.matrix_changes import (
    MatrixTensors,
    compute_change,
    differs,
)
from ouzel.backends.openvino.graph.adapter_shape import AdaptedMatrix
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.backends.openvino.weights.source import Matrix, MemoryWriter, describe_matrix
from ouzel.backends.openvino.weights.unpacking import decode_rows
from ouzel.checkpoint.weight_files import SINGLE_FILE
from tests.backends.quantize import save

Floats = NDArray[np.float32]
NUM_ROWS, NUM_COLUMNS, RANK = 48, 128, 3


@pytest.fixture
def stored() -> Floats:
    return np.random.default_rng(1).normal(0, 0.02, (NUM_ROWS, NUM_COLUMNS)).astype(np.float32)


@pytest.mark.parametrize("width", ["int8", "int4"])
@pytest.mark.parametrize("packs", [False, True])
def test_dora_measures_the_rounded_weights(
    stored: Floats, width: Literal["int8", "int4"], packs: bool, tmp_path: Path
) -> None:
    """Each row gets the length that the adapter says, also if the weights are rounded."""
    save(tmp_path / SINGLE_FILE, {"q.weight": ("F32", stored)})
    spec = describe_matrix("q", NUM_ROWS, NUM_COLUMNS)
    weights = CompressedWeights(Checkpoint(tmp_path), MemoryWriter(), packs=packs).matrix(
        spec, width
    )
    random = np.random.default_rng(2)
    a = random.normal(0, 0.1, (RANK, NUM_COLUMNS)).astype(np.float32)
    b = random.normal(0, 0.1, (NUM_ROWS, RANK)).astype(np.float32)
    magnitude = random.uniform(0.1, 0.3, NUM_ROWS).astype(np.float32)

    change = compute_change(
        AdaptedMatrix("q", NUM_COLUMNS, NUM_ROWS, weights=weights),
        MatrixTensors(a, b.copy(), magnitude=magnitude),
    )

    def factor(base: Floats) -> Floats:
        lengths = np.sqrt(np.square(base + b @ a).sum(axis=1))
        result: Floats = magnitude / lengths - np.float32(1)
        return result

    rounded = decode_rows(weights, 0, NUM_ROWS)
    assert change.factor is not None
    np.testing.assert_allclose(change.factor, factor(rounded), rtol=0, atol=1e-6)
    assert np.abs(change.factor - factor(stored)).max() > 1e-5


def test_a_bias_without_lora_takes_the_order_of_the_rows() -> None:
    """PEFT's `bias="all"` stores such biases; fused matrices have rows in another order."""
    order, bias = (2, 0, 3, 1), np.arange(8, dtype=np.float32)
    own = np.full(8, 0.5, np.float32)
    change = compute_change(
        AdaptedMatrix("q", NUM_COLUMNS, 8, row_order=order, bias=own),
        MatrixTensors(
            np.zeros((0, NUM_COLUMNS), np.float32), np.zeros((8, 0), np.float32), bias=bias
        ),
    )
    assert (change.b.shape, change.factor) == ((8, 0), None)
    assert change.shift is not None
    assert (change.shift + own).tolist() == [2, 0, 3, 1, 6, 4, 7, 5]


def in_f32(rows: Floats) -> Matrix:
    return Matrix(Encoding("f32"), rows.shape, {"values": rows})


def round_to_two_bits(rows: Floats) -> Floats:
    """Rounds to four levels in groups of 16, as Q2_K does."""
    groups = rows.reshape(-1, 16)
    lowest = groups.min(axis=1, keepdims=True)
    step = (groups.max(axis=1, keepdims=True) - lowest) / 3
    rounded: Floats = lowest + np.rint((groups - lowest) / step) * step
    return rounded.reshape(rows.shape)


def test_a_copy_of_weights_that_are_rounded_to_two_bits_is_the_same_matrix(stored: Floats) -> None:
    rounded = round_to_two_bits(stored)
    assert np.linalg.norm(rounded - stored) > 0.25 * np.linalg.norm(stored)
    assert not differs(in_f32(rounded), stored)


def test_a_copy_of_another_matrix_differs(stored: Floats) -> None:
    assert differs(in_f32(stored), stored[:, ::-1].copy())
    assert differs(in_f32(stored), np.zeros_like(stored))
    broken = stored.copy()
    broken[0, 0] = math.nan
    assert differs(in_f32(stored), broken)
