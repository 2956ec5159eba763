"""A server with calibrated weights: it finds, checks, refuses and replaces their cache entry."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.calibration.calibrated_entry import make_calibrated_entry
from ouzel.backends.openvino.calibration.export import export_checkpoint
from ouzel.backends.openvino.calibration.recording import CalibrationText, record
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.weights.cache import calibrated_path, entry_path, preferred_path
from ouzel.backends.openvino.weights.entry_check import WEIGHTS_FILE
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config import EngineConfig, ModelConfig
from ouzel.config.weights import read_weights
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.backends.forward import Driver
from tests.backends.short_demo import create_exact_runner, make_short_demo, make_text
from tests.release_only import release_only

Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_short_demo(tmp_path_factory.mktemp("demo") / "model")


def compute_logits(runner: ModelRunner) -> Floats:
    driver = Driver(runner)
    logits = driver.step([(driver.sequence(), [*range(300, 380)])], rows="all").copy()
    runner.close()
    return logits


def make_entry(demo: Path, cache: Path, weights: str = "int4") -> bool:
    config, plan = read_hf_config(demo), read_weights(weights)
    return make_calibrated_entry(demo, config, plan, str(cache), make_text())


@pytest.fixture(scope="module")
def made_entry(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calibrates the short demo model, and returns the cache entry. Tests change copies of it."""
    cache = tmp_path_factory.mktemp("calibrated")
    assert make_entry(demo, cache)
    [entry] = cache.iterdir()
    return entry


def copy_entry(entry: Path, cache: Path) -> Path:
    return Path(shutil.copytree(entry, cache / entry.name))


def test_a_server_takes_the_calibrated_weights_once_they_are_there(
    demo: Path, made_entry: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        plain = compute_logits(create_exact_runner(demo, tmp_path, "int4"))
    assert (
        "`ouzel pull --weights int4 --calibrate` makes int4 weights with smaller errors"
        in caplog.text
    )
    copy_entry(made_entry, tmp_path)
    assert not make_entry(demo, tmp_path), "the entry exists already"
    with caplog.at_level(logging.INFO):
        calibrated = compute_logits(create_exact_runner(demo, tmp_path, "int4"))
    assert not np.array_equal(plain, calibrated)
    [entry] = tmp_path.glob("*-int4,calibrated-*")
    assert f"serving the calibrated weights {entry}" in caplog.text
    kinds = {path.name.split("-")[1] for path in tmp_path.iterdir()}
    assert kinds == {"int4", "int4,calibrated"}, "no other files are left in the cache"


def test_the_log_names_calibrated_weights_that_are_out_of_date(
    demo: Path, made_entry: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = copy_entry(made_entry, tmp_path)
    entry.rename(entry.with_name(entry.name[:-16] + "0" * 16))
    create_exact_runner(demo, tmp_path, "int4").close()
    assert (
        "are not used: make them again with `ouzel pull --weights ... --calibrate`" in caplog.text
    )


@pytest.mark.parametrize(("kind", "other"), [("int4", "int4,packed"), ("int4,packed", "int4")])
def test_calibrated_weights_in_the_other_layout_are_named(
    kind: str, other: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = entry_path(str(tmp_path), tmp_path, [], kind)
    calibrated_path(entry_path(str(tmp_path), tmp_path, [], other)).mkdir(parents=True)
    assert preferred_path(entry) == entry
    assert f"{other},calibrated-" in caplog.text and "are not used" in caplog.text
    calibrated_path(entry).mkdir()
    caplog.clear()
    assert preferred_path(entry) == calibrated_path(entry)
    assert not caplog.text


@pytest.mark.release("calibrated weights: broken, of other code, beyond the positions")
@pytest.mark.parametrize(
    "changed",
    ["FORMAT", *release_only("calibrated weights of another version", "ouzel.__version__")],
)
def test_calibrated_weights_of_other_code_are_made_again(
    demo: Path, changed: str, made_entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_entry(made_entry, tmp_path)
    monkeypatch.setattr(f"ouzel.backends.openvino.weights.cache.{changed}", "another")
    assert make_entry(demo, tmp_path), "the earlier entry is out of date"
    assert len(list(tmp_path.iterdir())) == 1, "the earlier entry is deleted"


def test_inspect_reports_the_calibrated_weights_of_a_server(
    demo: Path, made_entry: Path, tmp_path: Path
) -> None:
    model = ModelConfig(model=str(demo), weights="int4", cache_dir=str(tmp_path))
    engine = EngineConfig(kv_cache_gib=0.01, precision="f32")  # has no packed matrices
    plain = inspect_model(model, engine)
    copy_entry(made_entry, tmp_path)
    found = inspect_model(model, engine)
    assert (plain.are_weights_calibrated, found.are_weights_calibrated) == (False, True)
    assert found.weights != plain.weights
    encodings = {encoding for encoding, _ in found.weights}
    assert {"i4, f16 scales of 64", "i8, f16 scales of 64"} <= encodings
    [written] = tmp_path.glob("*/weights.bin")
    assert found.weight_bytes <= written.stat().st_size < found.weight_bytes + 64 * 200
    with written.open("r+b") as file:
        file.truncate(1000)
    broken = inspect_model(model, engine)
    assert not broken.are_weights_calibrated, "a start does not use the broken file"


def test_a_model_without_whole_groups_of_columns_is_refused_by_name(tmp_path: Path) -> None:
    directory = GOLDEN / "lfm2"
    config = read_hf_config(directory)
    with pytest.raises(
        ModelLoadError, match=r"lfm2 \(type lfm2\) cannot be calibrated: .* groups of 64"
    ):
        make_calibrated_entry(
            directory, config, read_weights("int4"), str(tmp_path), make_text(160)
        )
    (tmp_path / "made").mkdir()
    with pytest.raises(
        ModelLoadError, match=r"lfm2 \(type lfm2\) cannot be calibrated: .* groups of 64"
    ):
        export_checkpoint(directory, config, tmp_path / "made", make_text(160))
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@pytest.mark.release("calibrated weights: broken, of other code, beyond the positions")
def test_no_token_lies_beyond_the_positions_of_the_model(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(demo, tmp_path / "model")
    config_file = tmp_path / "model" / "config.json"
    config = json.loads(config_file.read_bytes())
    config_file.write_text(json.dumps(config | {"max_position_embeddings": 48}))
    lengths: list[int] = []

    def record_lengths(runner: Any, inputs: Any, indices: Any, chunks: Any, path: Any) -> Any:
        lengths.extend(map(len, chunks))
        return record(runner, inputs, indices, chunks, path)

    monkeypatch.setattr(
        "ouzel.backends.openvino.calibration.calibrated_entry.record", record_lengths
    )
    plan = read_weights("int4")
    found = CalibrationText((7, 8), [*range(300, 500)])
    assert make_calibrated_entry(
        tmp_path / "model", read_hf_config(tmp_path / "model"), plan, str(tmp_path), found
    )
    assert lengths == [48, 48, 48, 48, 18]


@pytest.mark.release("calibrated weights: broken, of other code, beyond the positions")
def test_broken_calibrated_weights_are_not_replaced_under_their_name(
    demo: Path, made_entry: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = compute_logits(create_exact_runner(demo, tmp_path / "plain", "int4"))
    entry = copy_entry(made_entry, tmp_path / "calibrated")
    with (entry / WEIGHTS_FILE).open("r+b") as file:
        file.truncate(1000)
    assert np.array_equal(
        compute_logits(create_exact_runner(demo, tmp_path / "calibrated", "int4")), plain
    )
    assert (
        f"deleted the calibrated weights {entry}; weights without a calibration replace them"
        in caplog.text
    )
    assert not entry.exists()
    assert make_entry(demo, tmp_path / "calibrated"), "the weights are calibrated again"


def test_a_plan_without_four_bits_has_nothing_to_calibrate(demo: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="--weights int8 has no matrix in int4"):
        make_entry(demo, tmp_path, "int8")
