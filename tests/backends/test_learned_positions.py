"""Families with a table of learned positions: its length limits all requests."""

import shutil
from pathlib import Path

import pytest

from ouzel.backends.openvino.inspection import inspect_model
from ouzel.config import EngineConfig, ModelConfig
from ouzel.errors import ModelLoadError
from tests.backends.checkpoint_edits import load_copy
from tests.backends.conftest import read_golden
from tests.backends.forward import Driver, relative_error

NAMES = ["gpt2", "opt"]


@pytest.mark.parametrize("name", NAMES)
def test_no_request_is_longer_than_the_table(name: str, tmp_path: Path) -> None:
    directory = shutil.copytree(read_golden(name).directory, tmp_path / name)
    assert load_copy(directory).info.max_model_len == 128
    with pytest.raises(ModelLoadError, match=r"max_model_len must be <= 128, .*, given 129"):
        load_copy(directory, max_model_len=129)


@pytest.mark.parametrize("name", NAMES)
def test_the_last_position_of_the_table_is_computed(name: str, tmp_path: Path) -> None:
    """A prompt as long as the context gives the same logits in one chunk and in several."""
    golden = read_golden(name)
    runner = load_copy(shutil.copytree(golden.directory, tmp_path / name))
    tokens = (golden.prompt + golden.greedy + golden.prompt)[:128]
    _, whole = Driver(runner).prefill(tokens, 128)
    _, chunked = Driver(runner).prefill(tokens, 31)
    assert relative_error(chunked[-1], whole[-1]) < 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_inspection_tells_the_length_of_the_table(name: str) -> None:
    model = ModelConfig(model=str(read_golden(name).directory))
    assert inspect_model(model, EngineConfig()).max_positions == 128
