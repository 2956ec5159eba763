"""Calibration rounds weights with error feedback, and chooses the width of each matrix."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.calibration.error_feedback import (
    MAX_COLUMNS,
    column_blocks,
    decompose,
    encode_blocks,
    encode_with_feedback,
    factorise,
)
from ouzel.backends.openvino.calibration.recording import (
    CalibrationText,
    TracedWeights,
    find_product_inputs,
)
from ouzel.backends.openvino.calibration.widths import Candidate, choose_int8
from ouzel.backends.openvino.checkpoint_graph import build_model
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.encodings import Encoding, Parts, encode_int4
from ouzel.backends.openvino.weights.source import MemoryWriter
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config.weights import read_weights
from ouzel.demo import MODEL_DIRECTORY
from tests.backends import GOLDEN

Floats = NDArray[np.float32]
INT4 = Encoding("i4", "f16", group_size=64)
PLAIN_INT4 = Encoding("i4", "f32", group_size=64)


@pytest.fixture(scope="module")
def inputs() -> Floats:
    """Draws rows of correlated columns of very different sizes: [2000, 256]."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, 256))
    mixed = rows @ rng.standard_normal((256, 256)) / 16 + rng.standard_normal((2000, 256))
    return (mixed * np.exp(rng.standard_normal(256))).astype(np.float32)


@pytest.fixture(scope="module")
def weights() -> Floats:
    return np.random.default_rng(1).standard_t(5, (96, 256)).astype(np.float32)


def measure_loss(weights: Floats, encoding: Encoding, parts: Parts, inputs: Floats) -> float:
    return float(np.linalg.norm((weights - decode(encoding, parts)) @ inputs.T))


def test_products_lose_less_with_error_feedback_than_by_rounding(
    weights: Floats, inputs: Floats
) -> None:
    parts = encode_with_feedback(weights, factorise(inputs.T @ inputs), 64)
    plain = measure_loss(weights, PLAIN_INT4, encode_int4(weights), inputs)
    assert measure_loss(weights, INT4, parts, inputs) < 0.8 * plain


def test_each_sweep_of_refinement_loses_less(weights: Floats, inputs: Floats) -> None:
    feedback = factorise(inputs.T @ inputs)
    losses = [
        measure_loss(weights, INT4, encode_with_feedback(weights, feedback, 64, sweeps), inputs)
        for sweeps in range(4)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] < 0.97 * losses[0]


def test_the_factor_is_the_factor_of_cholesky(inputs: Floats) -> None:
    moments = inputs.T @ inputs
    moments[np.diag_indices(len(moments))] += moments.trace() / len(moments)
    found = moments.copy()
    # 256 columns are no multiple of the number of columns that `decompose` factorises at once
    decompose(found)
    expected = np.linalg.cholesky(moments.astype(np.float64))
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("columns", "num_blocks"), [(64, 1), (5120, 1), (5184, 2), (9728, 2), (28672, 6)]
)
def test_wide_matrices_are_cut_into_blocks_of_whole_groups(columns: int, num_blocks: int) -> None:
    blocks = column_blocks(columns, 64)
    assert len(blocks) == num_blocks
    assert [0, *(each.stop for each in blocks)] == [*(each.start for each in blocks), columns]
    assert all(each.start % 64 == 0 and each.stop - each.start <= MAX_COLUMNS for each in blocks)


def test_blocks_of_columns_are_encoded_by_themselves(weights: Floats, inputs: Floats) -> None:
    feedbacks = [factorise(some.T @ some) for some in (inputs[:, :192], inputs[:, 192:])]
    parts = encode_blocks(weights, feedbacks, 64)
    first = encode_with_feedback(weights[:, :192], feedbacks[0], 64)
    assert np.array_equal(decode(INT4, parts)[:, :192], decode(INT4, first))
    plain = measure_loss(weights, PLAIN_INT4, encode_int4(weights), inputs)
    assert measure_loss(weights, INT4, parts, inputs) < 0.8 * plain


def test_fewer_rows_than_columns_do_no_harm_to_products_of_other_rows(
    weights: Floats, inputs: Floats
) -> None:
    some, others = inputs[:200], inputs[200:]
    parts = encode_with_feedback(weights, factorise(some.T @ some), 64)
    assert measure_loss(weights, INT4, parts, others) < 0.95 * measure_loss(
        weights, PLAIN_INT4, encode_int4(weights), others
    )


def test_without_correlations_feedback_is_rounding_with_a_searched_scale(weights: Floats) -> None:
    parts = encode_with_feedback(weights, factorise(np.eye(256, dtype=np.float32)), 64)
    scales = np.repeat(parts["scales"].astype(np.float32), 64, axis=1)
    levels = decode(INT4, parts) / scales
    assert np.array_equal(np.rint(levels), np.clip(np.rint(weights / scales), -8, 7))


def test_the_encoding_is_the_same_each_time(weights: Floats, inputs: Floats) -> None:
    first, second = (
        encode_with_feedback(weights, factorise(inputs.T @ inputs), 64) for _ in range(2)
    )
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_rows_are_encoded_alike_in_pieces_of_a_matrix(weights: Floats, inputs: Floats) -> None:
    feedback = factorise(inputs.T @ inputs)
    whole = decode(INT4, encode_with_feedback(weights, feedback, 64))
    pieces = [
        decode(INT4, encode_with_feedback(weights[at : at + 13], feedback, 64))
        for at in range(0, 96, 13)
    ]
    is_equal = np.concatenate(pieces) == whole
    # products of other shapes may round a sum differently, and so move a few levels
    assert is_equal.mean() > 0.99


def test_columns_that_are_always_zero_do_no_harm(weights: Floats, inputs: Floats) -> None:
    some = inputs.copy()
    some[:, 100:140] = 0
    parts = encode_with_feedback(weights, factorise(some.T @ some), 64)
    assert np.isfinite(decode(INT4, parts)).all()
    assert measure_loss(weights, INT4, parts, some) < measure_loss(
        weights, PLAIN_INT4, encode_int4(weights), some
    )


def test_a_matrix_of_zeros_stays_zero() -> None:
    parts = encode_with_feedback(
        np.zeros((4, 64), np.float32), factorise(np.zeros((64, 64), np.float32)), 64
    )
    assert not decode(INT4, parts).any()


def make_candidates(errors: Sequence[float], num_weights: int = 1000) -> list[Candidate]:
    return [Candidate(f"m{at}", num_weights, 64, error) for at, error in enumerate(errors)]


def test_the_matrices_with_the_largest_errors_get_eight_bits_within_the_budget() -> None:
    """All ten matrices have the same size and 4.25 bits a weight; each in int8 adds 0.4 bits."""
    assert choose_int8(make_candidates([0.01 * at for at in range(10)]), 4.7) == {"m9"}
    assert choose_int8(make_candidates([0.01 * at for at in range(10)]), 5.1) == {"m8", "m9"}
    assert choose_int8(make_candidates([0.1] * 10), 4.6) == frozenset()


def test_a_matrix_that_does_not_fit_leaves_its_bits_to_smaller_ones() -> None:
    large, small = Candidate("large", 5000, 64, 0.5), Candidate("small", 500, 64, 0.01)
    assert choose_int8([large, small, *make_candidates([0.001] * 5)], 4.5) == {"small"}


@pytest.mark.parametrize(
    ("directory", "added"),
    [
        (MODEL_DIRECTORY, {"o_proj", "down_proj"}),
        (
            GOLDEN / "granite",
            {"o_proj", "down_proj"},
        ),  # has biases, and multiplies products before the sum
        (GOLDEN / "gemma3", set()),  # normalises products before the sum
    ],
    ids=["demo", "granite", "gemma3"],
)
def test_sums_to_which_products_are_added_are_found(directory: Path, added: set[str]) -> None:
    config = read_hf_config(directory)
    stored, _ = find_weights(directory, config).open()
    traced = TracedWeights(CompressedWeights(stored, MemoryWriter()))
    graph = build_model(
        config, family(config.model_type), None, traced, read_weights("auto"), predicts=False
    ).graph
    inputs = find_product_inputs(graph, traced.specs)
    added_to = [key for each in inputs if each.total is not None for key in each.keys]
    assert {key.split(".")[-2] for key in added_to} == added
    names = {key.split(".")[-2] for each in inputs for key in each.keys}
    assert names >= {"q_proj", "gate_proj", "o_proj"}


def test_each_chunk_begins_as_a_prompt_does() -> None:
    text = CalibrationText((7, 8), [1, 2, 3, 4, 5])
    assert [chunk.tolist() for chunk in text.chunks(5)] == [[7, 8, 1, 2, 3], [7, 8, 4, 5]]
    assert [chunk.tolist() for chunk in text.chunks(2)] == [[7, each] for each in (1, 2, 3, 4, 5)]
    assert [len(chunk) for chunk in CalibrationText((), [*range(600)]).chunks(4096)] == [512, 88]
