"""Calibrated weights: the encoder, the widths, and what a server makes of them."""

import json
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.calibration.calibrated_entry import make_calibrated_entry
from ouzel.backends.openvino.calibration.error_feedback import (
    MAX_COLUMNS,
    column_blocks,
    decompose,
    encode_blocks,
    encode_with_feedback,
    factorise,
)
from ouzel.backends.openvino.calibration.export import Export, export_checkpoint
from ouzel.backends.openvino.calibration.recording import (
    CalibrationText,
    TracedWeights,
    find_product_inputs,
    record,
)
from ouzel.backends.openvino.calibration.widths import Candidate, choose_int8
from ouzel.backends.openvino.checkpoint_graph import build_model
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.encodings import Encoding, Parts, encode_int4
from ouzel.backends.openvino.weights.entry_check import WEIGHTS_FILE, open_entry
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.backends.openvino.weights.source import MemoryWriter, Tensor
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config import EngineConfig, ModelConfig
from ouzel.config.weights import read_weights
from ouzel.demo import MODEL_DIRECTORY
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.backends.forward import Driver
from tests.backends.test_openvino_gguf import COLUMNS, quantised_model
from tests.release_only import release_only

Floats = NDArray[np.float32]
INT4 = Encoding("i4", "f16", group_size=64)
PLAIN_INT4 = Encoding("i4", "f32", group_size=64)


@pytest.fixture(scope="module")
def inputs() -> Floats:
    """Rows whose columns depend on each other, and of which some are much larger than others."""
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((2000, 256)) @ rng.standard_normal(
        (256, 256)
    ) / 16 + rng.standard_normal((2000, 256))
    return (mixed * np.exp(rng.standard_normal(256))).astype(np.float32)


@pytest.fixture(scope="module")
def weights() -> Floats:
    return np.random.default_rng(1).standard_t(5, (96, 256)).astype(np.float32)


def loss(weights: Floats, encoding: Encoding, parts: Parts, inputs: Floats) -> float:
    return float(np.linalg.norm((weights - decode(encoding, parts)) @ inputs.T))


def test_products_lose_less_with_error_feedback_than_by_rounding(
    weights: Floats, inputs: Floats
) -> None:
    parts = encode_with_feedback(weights, factorise(inputs.T @ inputs), 64)
    plain = loss(weights, PLAIN_INT4, encode_int4(weights), inputs)
    assert loss(weights, INT4, parts, inputs) < 0.8 * plain


def test_each_sweep_of_refinement_loses_less(weights: Floats, inputs: Floats) -> None:
    feedback = factorise(inputs.T @ inputs)
    losses = [
        loss(weights, INT4, encode_with_feedback(weights, feedback, 64, sweeps), inputs)
        for sweeps in range(4)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] < 0.97 * losses[0]


def test_the_factor_is_the_one_of_cholesky(inputs: Floats) -> None:
    moments = inputs.T @ inputs
    moments[np.diag_indices(len(moments))] += moments.trace() / len(moments)
    found = moments.copy()
    decompose(found)  # 256 columns, which are no multiple of what is factorised at once
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
    plain = loss(weights, PLAIN_INT4, encode_int4(weights), inputs)
    assert loss(weights, INT4, parts, inputs) < 0.8 * plain


def test_fewer_rows_than_columns_do_no_harm_to_products_of_other_rows(
    weights: Floats, inputs: Floats
) -> None:
    some, others = inputs[:200], inputs[200:]
    parts = encode_with_feedback(weights, factorise(some.T @ some), 64)
    assert loss(weights, INT4, parts, others) < 0.95 * loss(
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


def test_rows_are_encoded_alike_however_a_matrix_is_cut(weights: Floats, inputs: Floats) -> None:
    feedback = factorise(inputs.T @ inputs)
    whole = decode(INT4, encode_with_feedback(weights, feedback, 64))
    pieces = [
        decode(INT4, encode_with_feedback(weights[at : at + 13], feedback, 64))
        for at in range(0, 96, 13)
    ]
    is_equal = np.concatenate(pieces) == whole
    assert (
        is_equal.mean() > 0.99
    )  # products of other shapes may round a sum otherwise, which moves a level seldom


def test_columns_that_are_always_zero_do_no_harm(weights: Floats, inputs: Floats) -> None:
    some = inputs.copy()
    some[:, 100:140] = 0
    parts = encode_with_feedback(weights, factorise(some.T @ some), 64)
    assert np.isfinite(decode(INT4, parts)).all()
    assert loss(weights, INT4, parts, some) < loss(weights, PLAIN_INT4, encode_int4(weights), some)


def test_a_matrix_of_zeros_stays_so() -> None:
    parts = encode_with_feedback(
        np.zeros((4, 64), np.float32), factorise(np.zeros((64, 64), np.float32)), 64
    )
    assert not decode(INT4, parts).any()


def candidates(errors: Sequence[float], num_weights: int = 1000) -> list[Candidate]:
    return [Candidate(f"m{at}", num_weights, 64, error) for at, error in enumerate(errors)]


def test_the_matrices_that_suffer_most_get_eight_bits_within_the_budget() -> None:
    """Ten matrices of equal size at 4.25 bits; each in int8 adds 0.4 to the average."""
    assert choose_int8(candidates([0.01 * at for at in range(10)]), 4.7) == {"m9"}
    assert choose_int8(candidates([0.01 * at for at in range(10)]), 5.1) == {"m8", "m9"}
    assert choose_int8(candidates([0.1] * 10), 4.6) == frozenset()


def test_a_matrix_that_does_not_fit_leaves_its_bits_to_smaller_ones() -> None:
    large, small = Candidate("large", 5000, 64, 0.5), Candidate("small", 500, 64, 0.01)
    assert choose_int8([large, small, *candidates([0.001] * 5)], 4.5) == {"small"}


@pytest.mark.parametrize(
    ("directory", "added"),
    [
        (MODEL_DIRECTORY, {"o_proj", "down_proj"}),
        (GOLDEN / "granite", {"o_proj", "down_proj"}),  # with biases, and a factor before the sum
        (GOLDEN / "gemma3", set()),  # normalises products before the sum
    ],
    ids=["demo", "granite", "gemma3"],
)
def test_the_sums_that_products_are_added_to_are_found(directory: Path, added: set[str]) -> None:
    config = read_hf_config(directory)
    stored, _ = find_weights(directory, config).open()
    traced = TracedWeights(CompressedWeights(stored, MemoryWriter()))
    graph = build_model(
        config, family(config.model_type), None, traced, read_weights("auto"), predicts=False
    ).graph
    inputs = find_product_inputs(graph, traced.specs)
    assert {
        key.split(".")[-2] for each in inputs if each.total is not None for key in each.keys
    } == added
    assert {key.split(".")[-2] for each in inputs for key in each.keys} >= {
        "q_proj",
        "gate_proj",
        "o_proj",
    }


def text(vocab_size: int = 2000) -> CalibrationText:
    return CalibrationText((), np.random.default_rng(0).integers(0, vocab_size, 256).tolist())


def runner_of(directory: Path, cache: Path, weights: str) -> ModelRunner:
    model = ModelConfig(model=str(directory), weights=weights, cache_dir=str(cache))
    return create_runner(model, EngineConfig(precision="f32", kv_cache_dtype="f32"), num_blocks=16)


def logits_of(runner: ModelRunner) -> Floats:
    driver = Driver(runner)
    logits = driver.step([(driver.sequence(), [*range(300, 380)])], rows="all").copy()
    runner.close()
    return logits


def make_entry(cache: Path, weights: str = "int4") -> bool:
    config = read_hf_config(MODEL_DIRECTORY)
    return make_calibrated_entry(MODEL_DIRECTORY, config, read_weights(weights), str(cache), text())


@pytest.fixture(scope="module")
def made_entry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calibrates the demo model once, which takes seconds, and returns the entry; tests change copies of the entry."""
    cache = tmp_path_factory.mktemp("calibrated")
    assert make_entry(cache)
    [entry] = cache.iterdir()
    return entry


def copy_entry(entry: Path, cache: Path) -> Path:
    return Path(shutil.copytree(entry, cache / entry.name))


def test_a_server_takes_the_calibrated_weights_once_they_are_there(
    made_entry: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        plain = logits_of(runner_of(MODEL_DIRECTORY, tmp_path, "int4"))
    assert (
        "`ouzel pull --weights int4 --calibrate` makes int4 weights with smaller errors"
        in caplog.text
    )
    copy_entry(made_entry, tmp_path)
    assert not make_entry(tmp_path), "there already"
    with caplog.at_level(logging.INFO):
        calibrated = logits_of(runner_of(MODEL_DIRECTORY, tmp_path, "int4"))
    assert not np.array_equal(plain, calibrated)
    [entry] = tmp_path.glob("*-int4,calibrated-*")
    assert f"serving the calibrated weights {entry}" in caplog.text
    kinds = {path.name.split("-")[1] for path in tmp_path.iterdir()}
    assert kinds == {"int4", "int4,calibrated"}, "and nothing else is left behind"


def test_calibrated_weights_that_no_longer_count_are_told(
    made_entry: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = copy_entry(made_entry, tmp_path)
    entry.rename(entry.with_name(entry.name[:-16] + "0" * 16))
    runner_of(MODEL_DIRECTORY, tmp_path, "int4").close()
    assert (
        "are not used: make them again with `ouzel pull --weights ... --calibrate`" in caplog.text
    )


@pytest.mark.release("calibrated weights: broken, of other code, beyond the positions")
@pytest.mark.parametrize(
    "of", ["FORMAT", *release_only("calibrated weights of another version", "ouzel.__version__")]
)
def test_calibrated_weights_of_other_code_are_made_again(
    of: str, made_entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_entry(made_entry, tmp_path)
    monkeypatch.setattr(f"ouzel.backends.openvino.weights.cache.{of}", "another")
    assert make_entry(tmp_path), "the earlier entry does not count"
    assert len(list(tmp_path.iterdir())) == 1, "and is gone"


def test_inspect_tells_of_calibrated_weights_where_they_serve(
    made_entry: Path, tmp_path: Path
) -> None:
    model = ModelConfig(model=str(MODEL_DIRECTORY), weights="int4", cache_dir=str(tmp_path))
    plain = inspect_model(model, EngineConfig(kv_cache_gib=0.01))
    copy_entry(made_entry, tmp_path)
    found = inspect_model(model, EngineConfig(kv_cache_gib=0.01))
    assert (plain.are_weights_calibrated, found.are_weights_calibrated) == (False, True)
    assert found.weights != plain.weights
    assert {"i4, f16 scales of 64", "i8, f16 scales of 64"} <= {
        encoding for encoding, _ in found.weights
    }
    [written] = tmp_path.glob("*/weights.bin")
    assert found.weight_bytes <= written.stat().st_size < found.weight_bytes + 64 * 200
    with written.open("r+b") as file:
        file.truncate(1000)
    assert not inspect_model(model, EngineConfig(kv_cache_gib=0.01)).are_weights_calibrated, (
        "a start would not use it"
    )


def test_a_model_without_whole_groups_of_columns_is_refused_by_name(tmp_path: Path) -> None:
    directory = GOLDEN / "lfm2"
    config = read_hf_config(directory)
    with pytest.raises(
        ModelLoadError, match=r"lfm2 \(type lfm2\) cannot be calibrated: .* groups of 64"
    ):
        make_calibrated_entry(directory, config, read_weights("int4"), str(tmp_path), text(160))
    (tmp_path / "made").mkdir()
    with pytest.raises(
        ModelLoadError, match=r"lfm2 \(type lfm2\) cannot be calibrated: .* groups of 64"
    ):
        export_checkpoint(directory, config, tmp_path / "made", text(160))
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@pytest.mark.release("calibrated weights: broken, of other code, beyond the positions")
def test_no_token_lies_beyond_the_positions_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(MODEL_DIRECTORY, tmp_path / "model")
    config_file = tmp_path / "model" / "config.json"
    config = json.loads(config_file.read_bytes())
    config_file.write_text(json.dumps(config | {"max_position_embeddings": 48}))
    lengths: list[int] = []

    def recorded(runner: Any, inputs: Any, indices: Any, chunks: Any, path: Any) -> Any:
        lengths.extend(map(len, chunks))
        return record(runner, inputs, indices, chunks, path)

    monkeypatch.setattr("ouzel.backends.openvino.calibration.calibrated_entry.record", recorded)
    plan = read_weights("int4")
    found = CalibrationText((7, 8), [*range(300, 500)])
    assert make_calibrated_entry(
        tmp_path / "model", read_hf_config(tmp_path / "model"), plan, str(tmp_path), found
    )
    assert lengths == [48, 48, 48, 48, 18]


def test_each_chunk_begins_as_a_prompt_does() -> None:
    text = CalibrationText((7, 8), [1, 2, 3, 4, 5])
    assert [chunk.tolist() for chunk in text.chunks(5)] == [[7, 8, 1, 2, 3], [7, 8, 4, 5]]
    assert [chunk.tolist() for chunk in text.chunks(2)] == [[7, each] for each in (1, 2, 3, 4, 5)]
    assert [len(chunk) for chunk in CalibrationText((), [*range(600)]).chunks(4096)] == [512, 88]


@pytest.mark.release("calibrated weights: broken, of other code, beyond the positions")
def test_broken_calibrated_weights_are_not_replaced_under_their_name(
    made_entry: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = logits_of(runner_of(MODEL_DIRECTORY, tmp_path / "plain", "int4"))
    entry = copy_entry(made_entry, tmp_path / "calibrated")
    with (entry / WEIGHTS_FILE).open("r+b") as file:
        file.truncate(1000)
    assert np.array_equal(
        logits_of(runner_of(MODEL_DIRECTORY, tmp_path / "calibrated", "int4")), plain
    )
    assert (
        f"deleted the calibrated weights {entry}; weights without a calibration replace them"
        in caplog.text
    )
    assert not entry.exists()
    assert make_entry(tmp_path / "calibrated"), "the weights are calibrated again, not found there"


def test_a_plan_without_four_bits_has_nothing_to_calibrate(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="--weights int8 has no matrix in int4"):
        make_entry(tmp_path, "int8")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Export]:
    """Writes a calibrated checkpoint of the demo model, alone in its directory."""
    made = tmp_path_factory.mktemp("out") / "made"
    made.mkdir()
    return made, export_checkpoint(MODEL_DIRECTORY, read_hf_config(MODEL_DIRECTORY), made, text())


@pytest.mark.release("calibrated weights: broken, of other code, beyond the positions")
def test_a_written_checkpoint_is_kept_exactly(
    written: tuple[Path, Export], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made, export = written
    assert 4.25 <= export.bits_per_weight <= 4.6
    assert [path.name for path in made.parent.iterdir()] == ["made"]

    with caplog.at_level(logging.INFO):
        runner_of(made, tmp_path / "cache", "auto").close()
    assert "35 matrices keep their stored values, 1 others are compressed" in caplog.text
    [entry] = (tmp_path / "cache").iterdir()
    index = open_entry(entry)["weights"]
    content = (entry / "weights.bin").read_bytes()
    stored = Checkpoint(made)
    for module in export.modules[4]:
        rows, words = (
            index[f"{module}.weight"]["shape"][0],
            index[f"{module}.weight"]["shape"][1] // 8,
        )
        raw = stored.read(f"{module}.weight_packed", (rows, words), "I32").view(np.uint8) ^ 0x88
        part = index[f"{module}.weight"]["parts"]["values"]
        assert content[part["offset"] : part["offset"] + raw.size] == raw.tobytes()


def test_floats_are_written_exactly(written: tuple[Path, Export]) -> None:
    made, _ = written
    name = "model.layers.0.input_layernorm.weight"
    original, copied = (
        np.concatenate([*Checkpoint(each).rows(Tensor(name, (256,)))])
        for each in (MODEL_DIRECTORY, made)
    )
    assert np.array_equal(original, copied)


def test_a_gguf_file_is_written_with_the_rows_and_names_of_transformers(tmp_path: Path) -> None:
    """GGUF has the rows of queries and keys of llama in another order."""
    directory, made = quantised_model(tmp_path, ["Q8_0", "Q4_K"]), tmp_path / "made"
    made.mkdir()
    config = read_hf_config(directory)
    export_checkpoint(directory, config, made, CalibrationText((), range(3, 60)))
    assert json.loads((made / "config.json").read_bytes())["architectures"] == ["LlamaForCausalLM"]
    stored, _ = find_weights(directory, config).open()
    written, _ = find_weights(made, read_hf_config(made)).open()
    names = set(stored.names())
    assert {name for name in names if name.endswith("_proj.weight")}
    for name in names:
        tensor = Tensor(name, (COLUMNS,) if name.endswith("norm.weight") else (COLUMNS, COLUMNS))
        expected, found = (np.concatenate([*tensors.rows(tensor)]) for tensors in (stored, written))
        assert np.linalg.norm(found - expected) < 0.15 * np.linalg.norm(expected), name


def test_a_checkpoint_with_experts_is_not_written_yet(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="does not support experts"):
        export_checkpoint(
            GOLDEN / "olmoe",
            read_hf_config(GOLDEN / "olmoe"),
            tmp_path,
            CalibrationText((), range(16)),
        )
