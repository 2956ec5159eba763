"""Tests the cache of compressed weights, and the self-checks of models that come from it."""

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.backends.openvino.checks.selfcheck import SelfCheckFailed, warm_up
from ouzel.backends.openvino.weights.cache import CachedWeights, EntryWriter
from ouzel.backends.openvino.weights.entry_check import is_checked, seal_entry
from ouzel.engine.base import ForwardBatch
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.backends.checkpoint_edits import (
    EXACT,
    WEIGHTS,
    fill_tensors,
    flip_blocks,
    load_copy,
    measure_error,
    replace_text,
    truncate,
)
from tests.backends.conftest import read_golden
from tests.backends.forward import Driver
from tests.release_only import release_only


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "llama", tmp_path / "llama"))


def list_entries(directory: Path) -> list[Path]:
    return sorted((directory.parent / "cache").iterdir())


def read_stored_weights(entry: Path) -> dict[str, object]:
    index = json.loads((entry / "index.json").read_text().partition("\n")[2])
    weights: dict[str, object] = index["weights"]
    return weights


def test_the_second_load_does_not_read_the_checkpoint(directory: Path) -> None:
    load_copy(directory)
    path = directory / WEIGHTS
    stat = path.stat()
    path.write_bytes(b"\0" * stat.st_size)  # the size and the time stay the same
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert measure_error(load_copy(directory)) < 1e-5


def test_a_changed_checkpoint_is_compressed_again_and_the_old_entry_is_deleted(
    directory: Path,
) -> None:
    load_copy(directory)
    before = list_entries(directory)
    shutil.copy(GOLDEN / "llama" / WEIGHTS, directory / WEIGHTS)  # changes the time of the file
    load_copy(directory)
    assert len(list_entries(directory)) == len(before) == 1
    assert list_entries(directory) != before


@pytest.mark.parametrize(
    "weights", ["int8", *release_only("cached weights of further widths", "int4", "bf16", "f32")]
)
def test_a_cached_model_computes_the_same(directory: Path, weights: str) -> None:
    golden = read_golden("llama")
    first, second = (
        Driver(load_copy(directory, weights=weights)).prefill(golden.prompt, len(golden.prompt))[1]
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.release("broken caches of compiled models, each kind")
@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: truncate(entry / "weights.bin", 1000),
        lambda entry: (entry / "weights.bin").unlink(),
        lambda entry: (entry / "weights.bin").write_bytes(b""),
        lambda entry: (entry / "index.json").unlink(),
        lambda entry: truncate(entry / "index.json", 300),
        lambda entry: (entry / "index.json").write_text("[]"),
        lambda entry: replace_text(entry / "index.json", "[320, 64]", "[640, 32]"),
        lambda entry: seal_entry(entry, entry.name, {}),
        lambda entry: seal_entry(entry, "another-model-f32-source-content", {}),
        lambda entry: flip_blocks(entry / "weights.bin", 50),
    ],
)
def test_a_broken_entry_is_replaced(
    directory: Path, damage: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    load_copy(directory)
    [entry] = list_entries(directory)
    damage(entry)
    assert measure_error(load_copy(directory)) < 1e-5
    assert "is broken" in caplog.text
    caplog.clear()
    assert measure_error(load_copy(directory)) < 1e-5
    assert "is broken" not in caplog.text


def test_the_weights_are_checked_once_for_each_change_of_their_file(directory: Path) -> None:
    load_copy(directory)
    [entry] = list_entries(directory)
    assert is_checked(entry)
    os.utime(entry / "weights.bin")
    assert not is_checked(entry)
    load_copy(directory)
    assert is_checked(entry)


def test_an_entry_that_fails_the_self_check_is_replaced(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load_copy(directory)
    [entry] = list_entries(directory)
    (entry / "weights.bin").write_bytes(b"\xff" * (entry / "weights.bin").stat().st_size)  # NaN
    seal_entry(entry, entry.name, read_stored_weights(entry))
    assert measure_error(load_copy(directory)) < 1e-5
    assert f"cache entry {entry} is deleted and will be made again: self-check" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="ouzel"):  # other tests may have set another level
        assert measure_error(load_copy(directory)) < 1e-5
    assert caplog.text == ""


def replace_file(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def other_instructions() -> str:
    """Returns a limit for oneDNN that differs from the limit of this run."""
    return "AVX2" if os.environ.get("ONEDNN_MAX_CPU_ISA") != "AVX2" else "AVX2_VNNI"


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "nothing": lambda entry, monkeypatch: None,
    "weights": lambda entry, monkeypatch: replace_file(entry / "weights.bin"),
    "instructions": lambda entry, monkeypatch: monkeypatch.setenv(
        "ONEDNN_MAX_CPU_ISA", other_instructions()
    ),
    "index": lambda entry, monkeypatch: replace_file(entry / "index.json"),
    "no verdict": lambda entry, monkeypatch: (entry / "self_check.json").unlink(),
    "broken verdict": lambda entry, monkeypatch: (entry / "self_check.json").write_text("{"),
}


@pytest.mark.parametrize(
    "change",
    [
        *("nothing", "weights", "instructions"),
        *release_only("self-checks after a change", "index", "no verdict", "broken verdict"),
    ],
)
def test_a_changed_file_or_environment_repeats_the_self_check(
    directory: Path,
    change: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    load_copy(directory)
    [entry] = list_entries(directory)
    CHANGES[change](entry, monkeypatch)
    for runs_check in (change != "nothing", False):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger="ouzel.backends.openvino.checks.selfcheck"):
            assert measure_error(load_copy(directory)) < 1e-5
        assert ("self-check: chunks change" in caplog.text) == runs_check


@pytest.mark.parametrize(
    "settings",
    [
        {"kv_cache_dtype": "f16"},
        *release_only("self-checks after a change", {"num_threads": 1}, {"kv_cache_gib": 0.001}),
    ],
)
def test_other_settings_repeat_the_self_check(
    directory: Path, settings: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    load_copy(directory)
    with caplog.at_level(logging.DEBUG, logger="ouzel.backends.openvino.checks.selfcheck"):
        load_copy(directory, msgspec.structs.replace(EXACT, **settings))
    assert "self-check: chunks change" in caplog.text


def test_a_warm_up_with_nan_logits_fails() -> None:
    class Runner(FakeRunner):
        def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
            return np.full_like(super().run(batch), np.nan)

    warm_up(FakeRunner())
    with pytest.raises(SelfCheckFailed, match="not finite"):
        warm_up(Runner())


def test_new_weights_that_fail_the_self_check_are_refused(directory: Path) -> None:
    fill_tensors(directory / WEIGHTS, 0x7F)  # all values are 3.4e38
    with pytest.raises(ModelLoadError, match="self-check"):
        load_copy(directory)


def test_an_error_names_a_tensor_with_nan(directory: Path) -> None:
    fill_tensors(directory / WEIGHTS, 0xFF)
    with pytest.raises(ModelLoadError, match=r"tensor model\..* NaN or infinite"):
        load_copy(directory)


def test_the_model_is_served_if_its_weights_cannot_be_cached(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (directory.parent / "file").write_text("not a directory")
    with caplog.at_level(logging.WARNING):
        runner = load_copy(directory, cache_dir=str(directory.parent / "file" / "cache"))
    assert measure_error(runner) < 1e-5
    assert "cannot be stored" in caplog.text


def test_the_default_cache_is_in_the_cache_directory_of_the_user(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory.parent / "xdg"))
    load_copy(directory, cache_dir="")
    assert len(list((directory.parent / "xdg" / "ouzel").iterdir())) == 1


def test_two_processes_may_write_the_same_entry(tmp_path: Path) -> None:
    entry = tmp_path / "model-f32-source-content"
    with EntryWriter(entry) as first, EntryWriter(entry) as second:
        for writer in (first, second):
            part, place = writer.append([np.ones((2, 3), np.float32)])
            writer.commit({"name": {"shape": (2, 3), "parts": {"values": place}}})
            assert part.sum() == 6
    assert list(tmp_path.iterdir()) == [entry]
    assert CachedWeights(entry).array("name", (2, 3)).sum() == 6


def test_files_of_a_killed_process_are_deleted_after_a_day(tmp_path: Path) -> None:
    fresh, abandoned = tmp_path / ".unfinished-fresh", tmp_path / ".unfinished-old"
    for directory in (fresh, abandoned):
        directory.mkdir()
    os.utime(abandoned, (0, 0))
    with EntryWriter(tmp_path / "entry"):
        assert fresh.exists()
        assert not abandoned.exists()
