"""A named `--weights` on a quantised checkpoint: matrices stored in as few bits are kept, others are rounded."""

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
from ouzel.backends.openvino.weights.gguf import GgufCheckpoint
from ouzel.backends.openvino.weights.gguf_blocks import READERS
from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, MemoryWriter, Tensor
from ouzel.config import EngineConfig, ModelConfig
from ouzel.config.weights import WidthOption
from tests.backends.forward import Driver
from tests.backends.test_openvino_gguf import BLOCKS, quantised_model

SHAPE = (4, 512)
OF_FOUR_BITS = {"Q4_0", "Q4_1", "Q4_K", "IQ4_NL", "IQ4_XS", "Q2_K", "Q3_K"}
ENGINE = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.01)


def matrix(block_type: str, width: WidthOption, *, recompress: bool = False) -> Matrix:
    weights = CompressedWeights(GgufCheckpoint([BLOCKS]), MemoryWriter(), recompress=recompress)
    return weights.matrix(MatrixSpec((Tensor(block_type, SHAPE),), SHAPE), width)


def are_equal(one: Matrix, other: Matrix) -> bool:
    same_parts = one.parts.keys() == other.parts.keys()
    return (
        one.encoding == other.encoding
        and same_parts
        and all(np.array_equal(part, other.parts[name]) for name, part in one.parts.items())
    )


@pytest.mark.parametrize("block_type", [name for name in READERS if name != "MXFP4"])
def test_a_matrix_that_is_stored_in_no_more_bits_is_kept_as_under_auto(block_type: str) -> None:
    kept = matrix(block_type, "auto")
    assert are_equal(matrix(block_type, "int8"), kept)
    assert are_equal(matrix(block_type, "int4"), kept) == (block_type in OF_FOUR_BITS)


@pytest.mark.parametrize("block_type", ["Q4_0", "Q4_K", "Q6_K", "Q8_0"])
def test_recompress_rounds_each_matrix_to_the_named_width(block_type: str) -> None:
    assert matrix(block_type, "int4", recompress=True).encoding == Encoding(
        "i4", "f32", group_size=64
    )
    assert matrix(block_type, "int8", recompress=True).encoding == Encoding("u8", "f32", "u8")
    assert are_equal(matrix(block_type, "auto", recompress=True), matrix(block_type, "auto"))


@pytest.mark.parametrize("block_type", ["Q4_0", "Q6_K"])
@pytest.mark.parametrize("width", ["bf16", "f32"])
def test_a_float_width_decodes_quantised_matrices(block_type: str, width: WidthOption) -> None:
    assert matrix(block_type, width).encoding == Encoding(width)  # type: ignore[arg-type]  # auto is not among them


def settings(
    directory: Path, weights: str, **options: Any
) -> ModelConfig:  # Any: fields of ModelConfig
    return ModelConfig(
        model=str(directory), weights=weights, cache_dir=str(directory / "cache"), **options
    )


def logits(model: ModelConfig) -> tuple[str, NDArray[np.float32]]:
    runner = create_runner(model, ENGINE)
    _, rows = Driver(runner).prefill(list(range(7, 31)), 1 << 30)
    return runner.info.weights, rows


def test_a_kept_model_answers_as_under_auto_and_the_log_names_both_ways(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = quantised_model(tmp_path, ["Q4_K"])
    _, expected = logits(settings(directory, "auto"))
    with caplog.at_level(logging.INFO):
        told, found = logits(settings(directory, "int4"))
    assert told == "gguf as i8 (int4)"
    np.testing.assert_array_equal(found, expected)
    said = (
        "--weights int4: quantised matrices: 8 of Q4_K (4 bits) encoded as i8, f32 scales of 64; "
        "8.5 bits a weight in memory; --recompress would round further matrices to the named width"
    )
    assert caplog.text.count(said) == 1
    assert "--calibrate" not in caplog.text, "nothing was rounded to int4"
    caplog.clear()
    with caplog.at_level(logging.INFO):
        logits(settings(directory, "int4"))  # from the cache
    assert caplog.text.count(said) == 1


def test_the_log_says_from_which_form_matrices_are_rounded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = quantised_model(tmp_path, ["Q6_K", "Q4_0"])
    with caplog.at_level(logging.INFO):
        told, _ = logits(settings(directory, "int4"))
    assert told == "gguf as i4, i8 (int4)"
    assert "4 of Q4_0 (4 bits) kept as i4, f16 scales of 32" in caplog.text
    assert "3 of Q6_K (6 bits) rounded to i4, f32 scales of 64" in caplog.text
    assert (
        caplog.text.count(
            "`ouzel pull --weights int4 --calibrate` makes int4 weights with smaller errors"
        )
        == 1
    )


@pytest.mark.parametrize(
    ("block_type", "weights", "is_narrower"),
    [
        ("Q4_0", "int4", False),
        ("Q4_K", "int4", True),
        ("Q4_K", "int8", False),
        ("Q8_0", "int8", False),
    ],
)
def test_recompress_is_named_where_it_makes_values_narrower(
    block_type: str, weights: str, is_narrower: bool, tmp_path: Path
) -> None:
    found = inspect_model(settings(quantised_model(tmp_path, [block_type]), weights), ENGINE)
    assert ("--recompress" in found.stored) == is_narrower


def test_kept_and_recompressed_weights_have_cache_entries_of_their_own(tmp_path: Path) -> None:
    directory = quantised_model(tmp_path, ["Q4_0"])
    kept, _ = logits(settings(directory, "int4"))
    rounded, _ = logits(settings(directory, "int4", recompress=True))
    assert (kept, rounded) == ("gguf as i4 (int4)", "int4")
    assert len(list((tmp_path / "cache").glob("*/weights.bin"))) == 2
    assert logits(settings(directory, "int4"))[0] == kept  # neither entry takes the other's place


@pytest.mark.parametrize("recompress", [False, True])
@pytest.mark.parametrize("weights", ["auto", "int8", "int4", "bf16"])
def test_inspection_measures_the_weights_that_are_loaded(
    weights: str, recompress: bool, tmp_path: Path
) -> None:
    directory = quantised_model(tmp_path, ["Q4_K", "Q6_K", "Q4_0", "Q8_0"])
    model = settings(directory, weights, recompress=recompress)
    found = inspect_model(model, ENGINE)
    create_runner(model, ENGINE)
    [written] = (tmp_path / "cache").glob(
        "*/weights.bin"
    )  # where each part begins at a multiple of 64 bytes
    assert found.weight_bytes <= written.stat().st_size < found.weight_bytes + 64 * 100
    verb = "decoded" if weights == "bf16" else "rounded"
    is_rounded = weights in ("int4", "bf16") or (weights == "int8" and recompress)
    assert (f"of Q6_K (6 bits) {verb} to" in found.stored) == is_rounded
