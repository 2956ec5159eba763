"""The lists of models, `ouzel inspect` and `ouzel list` know models that speak."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ouzel.config import EngineConfig, ModelConfig
from ouzel.model_store.hub_reference import has_all_weights
from ouzel.model_store.kept import kept_in
from ouzel.model_store.model_directory import find_or_download
from ouzel.model_store.verdict import Verdict, judge
from ouzel.serve.files_of_model import read_files_of_model
from ouzel.serve.measuring import Question, measure
from ouzel.serve.models_dir import list_models
from tests.kokoro_files.tiny_models import write_archive_form, write_ir_form, write_onnx_form


def test_models_that_are_not_loaded_are_known_by_their_files(tmp_path: Path) -> None:
    write_onnx_form(tmp_path / "hub")
    write_archive_form(tmp_path / "archive")
    write_ir_form(tmp_path / "ir")
    found = list_models(str(tmp_path))
    assert sorted(found) == ["archive", "hub", "ir"]
    for path in found.values():
        facts = read_files_of_model(path, "auto")
        assert (facts.task, facts.model_type, facts.max_model_len) == ("speak", "kokoro", 510)
        assert facts.num_bytes


def test_its_memory_counts_weights_and_work(tmp_path: Path) -> None:
    model = ModelConfig(
        model=str(write_onnx_form(tmp_path / "tiny")), cache_dir=str(tmp_path / "cache")
    )
    local = find_or_download(model)
    size = measure(Question(local.put_paths_into(model), EngineConfig()))
    assert size.max_model_len == 510
    assert size.weight_bytes > 0
    assert size.cache_bytes > 2**30  # a piece of 250 phonemes


def test_the_made_directory_is_listed_with_its_source(tmp_path: Path) -> None:
    directory = write_onnx_form(tmp_path / "tiny")
    find_or_download(ModelConfig(model=str(directory), cache_dir=str(tmp_path / "cache")))
    [entry] = kept_in(tmp_path / "cache")
    assert (entry.kind, entry.name, entry.stale) == ("kokoro", "tiny", "")
    assert entry.source == str(directory / "onnx" / "model.onnx")
    (directory / "onnx" / "model.onnx").unlink()
    [entry] = kept_in(tmp_path / "cache")
    assert entry.stale


def test_a_snapshot_of_the_hub_is_whole_with_graph_and_voices(tmp_path: Path) -> None:
    directory = write_onnx_form(tmp_path / "tiny")
    assert has_all_weights(directory)
    for voice in (directory / "voices").iterdir():
        voice.unlink()
    assert not has_all_weights(directory)


def test_a_snapshot_with_a_broken_config_is_told_by_its_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    assert not has_all_weights(tmp_path)
    (tmp_path / "model.safetensors").touch()
    assert has_all_weights(tmp_path)


@pytest.mark.parametrize("write", [write_onnx_form, write_archive_form, write_ir_form])
def test_the_list_of_models_says_that_it_is_served(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    assert judge(write(tmp_path / "tiny")) == Verdict("kokoro", 0)


def test_the_list_of_models_says_why_pytorchs_weights_are_not_served(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"istftnet": {}, "vocab": {"a": 1}}')
    assert "Kokoro's weights for PyTorch" in judge(tmp_path).reason
