"""Every command that takes a model accepts it by the same checks."""

import logging
from pathlib import Path
from shutil import copytree

import pytest

from ouzel.backends.openvino.inspection import inspect_model
from ouzel.checkpoint.context_length import read_cached_values
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.cli.app import main
from ouzel.config import EngineConfig, ModelConfig
from ouzel.demo import MODEL_DIRECTORY
from ouzel.options.command_line import read_command_line
from ouzel.options.invalid_option import InvalidOption
from ouzel.serve.open_models import open_models
from tests.backends import GOLDEN

URL = ("--engine-url", "http://127.0.0.1:8000")
ENCODER = GOLDEN.parent / "golden_sentences" / "minilm"


@pytest.fixture(autouse=True)
def log_to_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the command has it: the handlers of earlier tests hold their streams."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])


@pytest.mark.parametrize("command", ["serve", "inspect", "pull", "bench"])
def test_each_command_refuses_a_context_that_the_model_does_not_have(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUZEL_MAX_MODEL_LEN", "4097")
    monkeypatch.setenv("OUZEL_PORT", "0")

    status = main([command, str(MODEL_DIRECTORY)])

    refusal = "ouzel: --max-model-len: must be <= 4096, the model's own limit, given 4097\n"
    assert (status, capsys.readouterr().err) == (2, refusal)


@pytest.mark.parametrize("command", ["serve", "pull", "bench"])
def test_each_command_refuses_an_encoder_for_vllm(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUZEL_ENGINE_URL", "http://127.0.0.1:8000")
    monkeypatch.setenv("OUZEL_PORT", "0")

    status = main([command, str(ENCODER)])

    assert status == 2
    assert "--engine vllm: needs a model that generates" in capsys.readouterr().err


def test_two_models_must_not_have_one_name(tmp_path: Path) -> None:
    """The name of the first model is known only when the model is found."""
    directory = copytree(MODEL_DIRECTORY, tmp_path / "demo")
    options = read_command_line([str(directory), "--model", f"demo={MODEL_DIRECTORY}"], {})

    with pytest.raises(InvalidOption, match="given 'demo' twice"):
        open_models(options)


@pytest.mark.parametrize(("option", "value"), [("--lora-parts", "dora"), ("--max-lora-rank", "32")])
def test_options_of_adapters_need_adapters(option: str, value: str) -> None:
    alone = read_command_line([str(MODEL_DIRECTORY), option, value], {})
    with pytest.raises(InvalidOption, match=f"^{option}: needs --lora or --max-loras$"):
        open_models(alone)
    with_adapters = [str(MODEL_DIRECTORY), option, value, "--max-loras", "2"]
    assert open_models(read_command_line(with_adapters, {}))


def test_all_models_of_a_server_are_checked(tmp_path: Path) -> None:
    options = read_command_line([*URL, "--model", f"encoder={ENCODER}"], {})

    with pytest.raises(InvalidOption, match="needs a model that generates"):
        open_models(options)


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "qwen3", "smollm3"])
def test_the_cached_values_of_a_token_are_those_of_the_engine(name: str) -> None:
    model = ModelConfig(model=str(GOLDEN / name), weights="f32")
    engine = EngineConfig(precision="f32", kv_cache_dtype="f32")

    num_values = read_cached_values(read_hf_config(GOLDEN / name))

    assert num_values is not None
    assert inspect_model(model, engine).kv_token_bytes == 4 * num_values
