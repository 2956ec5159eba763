"""Families with a table of learned positions: its length, and the names of their tensors."""

import shutil
from pathlib import Path

import pytest

from ouzel.backends.openvino.inspection import inspect_model
from ouzel.config import EngineConfig, ModelConfig
from ouzel.errors import ModelLoadError
from tests.backends.checkpoint_edits import WEIGHTS, add_tensor, load_copy, rename_tensors
from tests.backends.conftest import read_golden
from tests.backends.forward import Driver, relative_error

NAMES = ["gpt2"]
PREFIXES = {"gpt2": b"transformer."}


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
def test_a_model_saved_without_its_head_is_served(name: str, tmp_path: Path) -> None:
    """Such tensors have no prefix; older versions of transformers saved masks, too."""
    golden = read_golden(name)
    directory = shutil.copytree(golden.directory, tmp_path / name)
    rename_tensors(directory / WEIGHTS, b'"' + PREFIXES[name], b'"')
    add_tensor(directory / WEIGHTS, "h.0.attn.bias")
    add_tensor(directory / WEIGHTS, "h.1.attn.masked_bias")
    _, logits = Driver(load_copy(directory)).prefill(golden.prompt, len(golden.prompt))
    assert relative_error(logits, golden.logits) < 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_inspection_tells_the_length_of_the_table(name: str) -> None:
    model = ModelConfig(model=str(read_golden(name).directory))
    assert inspect_model(model, EngineConfig()).max_positions == 128
