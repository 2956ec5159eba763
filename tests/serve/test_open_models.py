"""Every command that takes a model accepts it by the same checks."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from ouzel.backends.openvino.inspection import inspect_model
from ouzel.checkpoint.context_length import read_cached_values
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.cli.app import main
from ouzel.config import EngineConfig, ModelConfig
from ouzel.demo import MODEL_DIRECTORY
from ouzel.errors import ModelLoadError
from ouzel.options.command_line import read_command_line
from ouzel.options.invalid_option import InvalidOption
from ouzel.serve.open_models import open_models
from tests.backends import GOLDEN
from tests.backends.eagle_heads import copy_head_as_ir
from tests.model_store.hub import serving_hub

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
    with pytest.raises(InvalidOption, match=f"^{option}: needs --lora or --max-loras$"):
        read_command_line([str(MODEL_DIRECTORY), option, value], {})
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


def test_a_head_as_openvino_ir_ends_the_start_except_in_the_eagle_mode_of_ovms(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    copy_head_as_ir(tmp_path / "head")
    flags = ["--profile", "ovms", str(MODEL_DIRECTORY), "--draft_source_model", "~/head"]

    with pytest.raises(ModelLoadError, match="is an EAGLE-3 head as OpenVINO IR, which cannot be"):
        open_models(read_command_line(flags, {}))

    [model] = open_models(read_command_line([*flags, "--draft_eagle3_mode"], {}))
    assert (model.local.draft, model.settings.model.draft_model) == (None, "")
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.message.startswith("--draft_eagle3_mode: ~/head is an OpenVINO IR, whose EAGLE-3")


def test_a_head_as_openvino_ir_is_left_out_after_its_download(tmp_path: Path) -> None:
    arguments = f"inspect {MODEL_DIRECTORY} --profile ovms --draft_source_model owner/model"
    with serving_hub(copy_head_as_ir(tmp_path / "head")) as hub:
        variables = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf")}
        done = subprocess.run(
            [sys.executable, "-m", "ouzel", *arguments.split(), "--draft_eagle3_mode"],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=True,
        )
    assert "--draft_eagle3_mode: owner/model is an OpenVINO IR" in done.stderr
    assert "draft" not in done.stdout


def test_an_adapter_beside_the_weights_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = copytree(MODEL_DIRECTORY, tmp_path / "demo")
    (directory / "adapter_config.json").write_text("{}")

    open_models(read_command_line([str(directory)], {}))
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert str(directory / "adapter_config.json") in record.message
    assert f"--lora NAME={directory}" in record.message

    caplog.clear()
    open_models(read_command_line([str(directory), "--lora", f"own={directory}"], {}))
    assert caplog.records == []
