"""Loads quantised checkpoints with an explicit width of `--weights`.

Matrices that are stored in no more bits than the width keep their values. Others are rounded.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.gguf import READERS, GgufCheckpoint
from ouzel.backends.openvino.weights.gguf_grids import GRID_READERS
from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, MemoryWriter, Tensor
from ouzel.config import EngineConfig, ModelConfig
from ouzel.config.weights import WidthOption
from tests.backends.forward import Driver
from tests.backends.test_openvino_gguf import BLOCKS, NOT_IN_PACKAGE, quantised_model

SHAPE = (4, 512)
FOUR_BITS = {"Q4_0", "Q4_1", "Q4_K", "IQ4_NL", "IQ4_XS", "Q2_K", "Q3_K", *GRID_READERS}
ENGINE = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.01)


def read_matrix(block_type: str, width: WidthOption, *, recompress: bool = False) -> Matrix:
    weights = CompressedWeights(GgufCheckpoint([BLOCKS]), MemoryWriter(), recompress=recompress)
    return weights.matrix(MatrixSpec((Tensor(block_type, SHAPE),), SHAPE), width)


def are_equal(first: Matrix, second: Matrix) -> bool:
    if first.encoding != second.encoding or first.parts.keys() != second.parts.keys():
        return False
    return all(np.array_equal(part, second.parts[name]) for name, part in first.parts.items())


@pytest.mark.parametrize("block_type", sorted(READERS.keys() - NOT_IN_PACKAGE - {"MXFP4"}))
def test_a_matrix_stored_in_no_more_bits_keeps_its_values_as_with_auto(block_type: str) -> None:
    with_auto = read_matrix(block_type, "auto")
    assert are_equal(read_matrix(block_type, "int8"), with_auto)
    assert are_equal(read_matrix(block_type, "int4"), with_auto) == (block_type in FOUR_BITS)


@pytest.mark.parametrize("block_type", ["Q4_0", "Q4_K", "Q6_K", "Q8_0"])
def test_recompress_rounds_each_matrix_to_the_named_width(block_type: str) -> None:
    assert read_matrix(block_type, "int4", recompress=True).encoding == Encoding(
        "i4", "f32", group_size=64
    )
    assert read_matrix(block_type, "int8", recompress=True).encoding == Encoding("u8", "f32", "u8")
    assert are_equal(
        read_matrix(block_type, "auto", recompress=True), read_matrix(block_type, "auto")
    )


@pytest.mark.parametrize("block_type", ["Q4_0", "Q6_K"])
@pytest.mark.parametrize("width", ["bf16", "f32"])
def test_a_float_width_decodes_quantised_matrices(block_type: str, width: WidthOption) -> None:
    encoding = read_matrix(block_type, width).encoding
    assert encoding == Encoding(width)  # type: ignore[arg-type]  # the width is never auto


# Any: the fields of ModelConfig
def make_config(directory: Path, weights: str, **options: Any) -> ModelConfig:
    return ModelConfig(
        model=str(directory), weights=weights, cache_dir=str(directory / "cache"), **options
    )


def compute_logits(model: ModelConfig) -> tuple[str, NDArray[np.float32]]:
    """Loads the model; returns the name of its weights, and the logits of a prompt."""
    runner = create_runner(model, ENGINE)
    _, rows = Driver(runner).prefill(list(range(7, 31)), 1 << 30)
    return runner.info.weights, rows


def test_a_model_with_stored_values_answers_as_with_auto_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = quantised_model(tmp_path, ["Q4_K"])
    _, expected = compute_logits(make_config(directory, "auto"))
    with caplog.at_level(logging.INFO):
        label, rows = compute_logits(make_config(directory, "int4"))
    assert label == "gguf as i8 (int4)"
    np.testing.assert_array_equal(rows, expected)
    message = (
        "--weights int4: quantised matrices: 8 of Q4_K (4 bits) encoded as i8, f32 scales of 64; "
        "8.5 bits a weight in memory; --recompress would round further matrices to the named width"
    )
    assert caplog.text.count(message) == 1
    assert "--calibrate" not in caplog.text, "nothing was rounded to int4"
    caplog.clear()
    with caplog.at_level(logging.INFO):
        compute_logits(make_config(directory, "int4"))  # the second load reads the cache
    assert caplog.text.count(message) == 1


def test_the_log_names_the_stored_form_of_rounded_matrices(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = quantised_model(tmp_path, ["Q6_K", "Q4_0"])
    with caplog.at_level(logging.INFO):
        label, _ = compute_logits(make_config(directory, "int4"))
    assert label == "gguf as i4, i8 (int4)"
    assert "4 of Q4_0 (4 bits) kept as i4, f16 scales of 32" in caplog.text
    assert "3 of Q6_K (6 bits) rounded to i4, f32 scales of 64" in caplog.text
    advice = "`ouzel pull --weights int4 --calibrate` makes int4 weights with smaller errors"
    assert caplog.text.count(advice) == 1


@pytest.mark.parametrize(
    ("block_type", "weights", "is_narrower"),
    [
        ("Q4_0", "int4", False),
        ("Q4_K", "int4", True),
        ("Q4_K", "int8", False),
        ("Q8_0", "int8", False),
    ],
)
def test_inspection_names_recompress_if_it_makes_values_narrower(
    block_type: str, weights: str, is_narrower: bool, tmp_path: Path
) -> None:
    inspected = inspect_model(make_config(quantised_model(tmp_path, [block_type]), weights), ENGINE)
    assert ("--recompress" in inspected.stored) == is_narrower


def test_stored_and_recompressed_weights_have_separate_cache_entries(tmp_path: Path) -> None:
    directory = quantised_model(tmp_path, ["Q4_0"])
    stored, _ = compute_logits(make_config(directory, "int4"))
    rounded, _ = compute_logits(make_config(directory, "int4", recompress=True))
    assert (stored, rounded) == ("gguf as i4 (int4)", "int4")
    assert len(list((tmp_path / "cache").glob("*/weights.bin"))) == 2
    assert compute_logits(make_config(directory, "int4"))[0] == stored  # both entries remain


FURTHER = pytest.mark.release("inspected sizes of further weights")


# Stored values, rounded values, rounded values in another width, and decoded values.
@pytest.mark.parametrize(
    ("weights", "recompress"),
    [
        *(("auto", False), ("int8", True), ("int4", False), ("bf16", False)),
        pytest.param("auto", True, marks=FURTHER),
        pytest.param("int8", False, marks=FURTHER),
        pytest.param("int4", True, marks=FURTHER),
        pytest.param("bf16", True, marks=FURTHER),
    ],
)
def test_inspection_measures_the_weights_that_are_loaded(
    weights: str, recompress: bool, tmp_path: Path
) -> None:
    directory = quantised_model(tmp_path, ["Q4_K", "Q6_K", "Q4_0", "Q8_0"])
    model = make_config(directory, weights, recompress=recompress)
    inspected = inspect_model(model, ENGINE)
    create_runner(model, ENGINE)
    [written] = (tmp_path / "cache").glob("*/weights.bin")
    # Each part begins at a multiple of 64 bytes.
    assert inspected.weight_bytes <= written.stat().st_size < inspected.weight_bytes + 64 * 100
    verb = "decoded" if weights == "bf16" else "rounded"
    is_rounded = weights in ("int4", "bf16") or (weights == "int8" and recompress)
    assert (f"of Q6_K (6 bits) {verb} to" in inspected.stored) == is_rounded
