"""Tests checkpoints whose embedding has another name or size than most, or is stored twice."""

import shutil
from pathlib import Path

import pytest

from ouzel.checkpoint.weight_files import SINGLE_FILE
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN, quantize
from tests.backends.checkpoint_edits import change_config, load_copy
from tests.backends.conftest import read_golden
from tests.backends.forward import Driver, relative_error

EMBEDDINGS = {
    "mamba": "backbone.embeddings.weight",
    "opt-post-norm": "model.decoder.embed_tokens.weight",
}
HEAD = "lm_head.weight"


@pytest.fixture(params=EMBEDDINGS)
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / request.param, tmp_path / request.param))


def measure_error(runner: ModelRunner, name: str) -> float:
    golden = read_golden(name)
    _, logits = Driver(runner).prefill(golden.prompt, len(golden.prompt))
    return relative_error(logits, golden.logits)


def test_a_copy_of_the_embedding_as_head_is_left_out(directory: Path) -> None:
    tensors = quantize.load(directory / SINGLE_FILE)
    embedding = tensors[EMBEDDINGS[directory.name]]
    quantize.save(directory / SINGLE_FILE, tensors | {HEAD: embedding})
    assert measure_error(load_copy(directory), directory.name) < 1e-5

    other = embedding[0], embedding[1] + 1
    quantize.save(directory / SINGLE_FILE, tensors | {HEAD: other})
    with pytest.raises(ModelLoadError, match=r"a tensor lm_head.weight that is not the same as"):
        load_copy(directory)


def test_a_mamba_saved_without_its_head_is_served(tmp_path: Path) -> None:
    directory = shutil.copytree(GOLDEN / "mamba", tmp_path / "mamba")
    tensors = quantize.load(directory / SINGLE_FILE)
    bare = {name.removeprefix("backbone."): stored for name, stored in tensors.items()}
    quantize.save(directory / SINGLE_FILE, bare)
    assert measure_error(load_copy(directory), "mamba") < 1e-5


def test_a_model_without_positions_has_a_usual_context_and_a_larger_limit(tmp_path: Path) -> None:
    directory = shutil.copytree(GOLDEN / "mamba", tmp_path / "mamba")
    change_config(directory, max_position_embeddings=None)
    assert load_copy(directory).info.max_model_len == 8192
    assert load_copy(directory, max_model_len=100_000).info.max_model_len == 100_000


def test_rotary_positions_of_lfm3_that_are_null_are_the_usual_ones(tmp_path: Path) -> None:
    directory = shutil.copytree(GOLDEN / "lfm3", tmp_path / "lfm3")
    change_config(directory, rope_parameters=None)
    missing = measure_error(load_copy(directory), "lfm3")
    text = (directory / "config.json").read_text()
    (directory / "config.json").write_text(text.replace("{", '{"rope_parameters": null, ', 1))
    assert measure_error(load_copy(directory), "lfm3") == missing
