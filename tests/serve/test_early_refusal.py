"""Options that contradict the model's small files are refused in one line, before the load."""

import json
import logging
from pathlib import Path
from shutil import copytree, ignore_patterns

import msgspec
import pytest

from ouzel.backends.openvino.graph.rope import read_rope
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.cli.app import main
from ouzel.config import EngineConfig, ModelConfig, VllmConfig
from ouzel.demo import MODEL_DIRECTORY
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.model_settings import ModelSettings
from ouzel.serve.open_models import open_model
from tests.serve.running import failure, serving

Json = dict[str, object]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Copies the demo model without its weights: reading them would fail with another error."""
    return copytree(MODEL_DIRECTORY, tmp_path / "model", ignore=ignore_patterns("*.safetensors"))


def refusal(capsys: pytest.CaptureFixture[str], directory: Path, *arguments: str) -> str:
    """Returns the only line of the output. Fails if a log line is about an engine."""
    status = main(
        [
            "serve",
            str(directory),
            "--port",
            "0",
            "--cache-dir",
            str(directory / "cache"),
            *arguments,
        ]
    )
    captured = capsys.readouterr()
    assert (status, captured.out) == (2, "")
    [line] = captured.err.splitlines()
    assert not (directory / "cache").exists()
    return line


@pytest.fixture(autouse=True)
def log_to_stderr(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As the command has it: the handlers of earlier tests hold their streams."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--max-model-len", "4097"),
            "--max-model-len: must be <= 4096, the model's own limit, given 4097",
        ),
        (("--max-model-len", "0"), "--max-model-len: must be a whole number >= 1, given '0'"),
        (
            ("--max-model-len", "4096", "--kv-cache-gib", "0.001"),
            "--max-model-len: must be <= 838, the capacity of --kv-cache-gib 0.001, given 4096",
        ),
        (
            ("--tool-parser", "nope"),
            "--tool-parser nope: tool_parser must be one of auto, none, response_template, ",
        ),
        (
            ("--reasoning-parser", "nope"),
            "--reasoning-parser nope: reasoning_parser must be one of auto, none, ",
        ),
        (("--tool-parser", "think"), "--tool-parser think: tool_parser must be one of "),
        (
            ("--tool-parser", "response_template"),
            "--tool-parser response_template: tokenizer_config.json has no response_template ",
        ),
        (
            ("--tool-parser", "hermes", "--reasoning-parser", "response_template"),
            "--reasoning-parser response_template: tokenizer_config.json has no response_template ",
        ),
        (("--lora", "a"), "--lora: each entry must be NAME=PATH, found 'a'"),
        (
            ("--lora", "a=/nowhere"),
            "--lora a=/nowhere: must be a PEFT adapter, it has no adapter_config.json",
        ),
        (
            ("--chat-template", "/nowhere.jinja"),
            "--chat-template /nowhere.jinja: No such file or directory",
        ),
        (("--chat-template", "/"), "--chat-template /: Is a directory"),
        (
            ("--kv-cache-dtype", "f32", "--precision", "bf16"),
            "--kv-cache-dtype: f32 needs --precision f32, given bf16",
        ),
        (("--kv-cache-dtype", "f32"), "--kv-cache-dtype: f32 needs --precision f32, given auto"),
        (
            ("--kv-cache-dtype", "bf16", "--precision", "f32"),
            "--kv-cache-dtype: bf16 needs --precision bf16 or auto, given f32",
        ),
        (
            ("--kv-cache-dtype", "bf16", "--precision", "int8"),
            "--kv-cache-dtype: bf16 needs --precision bf16 or auto, given int8",
        ),
    ],
)
def test_the_line_names_the_option_the_limit_and_the_value(
    capsys: pytest.CaptureFixture[str], directory: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert refusal(capsys, directory, *arguments).startswith(f"ouzel: {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{% for message in messages %}\n{{ message", "line 2: unexpected end of template"),
        (b"{% break %}", "line 1: "),
        (b"caf\xe9", "is not UTF-8 text"),
    ],
)
def test_a_chat_template_that_cannot_be_read(
    capsys: pytest.CaptureFixture[str], directory: Path, content: bytes, message: str
) -> None:
    template = directory.parent / "chat.jinja"
    template.write_bytes(content)

    line = refusal(capsys, directory, "--chat-template", str(template))

    assert line.startswith(f"ouzel: --chat-template {template}: {message}")


def test_a_response_template_that_describes_no_calls(
    capsys: pytest.CaptureFixture[str], directory: Path
) -> None:
    path = directory / "tokenizer_config.json"
    marks = {"open": "<think>", "close": "</think>", "content": "text"}
    described = {"start_anchor": "<|im_start|>assistant\n", "fields": {"thinking": marks}}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"response_template": described}))

    line = refusal(capsys, directory, "--tool-parser", "response_template")

    assert line.endswith("response_template, which describes no tool calls for this model")


def check(directory: Path, engine: EngineConfig, **options: int | str) -> None:
    """Opens the model of the directory with these options, as every command does."""
    model = msgspec.convert({"model": str(directory), **options}, ModelConfig)
    open_model(ModelSettings(model, engine, VllmConfig(), frozenset()))


ROPE: Json = {"rope_theta": 10000.0}
CONFIGS: list[Json] = [
    {"max_position_embeddings": 4096},
    {"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}},
    {"max_position_embeddings": 4096, "rope_scaling": {"type": "yarn", "factor": 4.0}},
    {
        "max_position_embeddings": 4096,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 2.5,
            "original_max_position_embeddings": 3000,
        },
    },
    {
        "max_position_embeddings": 8192,
        "rope_parameters": ROPE | {"rope_type": "yarn", "original_max_position_embeddings": 1024},
    },
    {"max_position_embeddings": 4096, "rope_scaling": None, "rope_parameters": ROPE},
    {
        "max_position_embeddings": 8192,
        "original_max_position_embeddings": 3000,
        "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1000},
    },
]


@pytest.mark.parametrize("config", CONFIGS)
def test_the_refused_length_is_beyond_the_engines_limit(tmp_path: Path, config: Json) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    limit = read_rope(HfConfig(config), head_dim=64).max_positions

    check(tmp_path, EngineConfig(), max_model_len=limit)

    with pytest.raises(InvalidOption, match=f"must be <= {limit}, "):
        check(tmp_path, EngineConfig(), max_model_len=limit + 1)


def test_the_limit_of_an_ir_is_read_from_its_config(tmp_path: Path) -> None:
    (tmp_path / "openvino_model.xml").touch()
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS[2]))

    with pytest.raises(InvalidOption, match=r"must be <= 4096, "):
        check(tmp_path, EngineConfig(kv_cache_gib=1), max_model_len=4097)


def test_an_ir_is_not_compressed(tmp_path: Path) -> None:
    (tmp_path / "openvino_model.xml").touch()

    with pytest.raises(InvalidOption, match=r"--weights: must be auto, .* given 'int4'"):
        check(tmp_path, EngineConfig(), weights="int4")


@pytest.mark.parametrize("config", [{}, {"max_position_embeddings": "many"}, {"rope_scaling": 1}])
def test_the_engine_reports_faults_of_the_models_files(tmp_path: Path, config: Json) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))

    check(tmp_path, EngineConfig(kv_cache_gib=0.001), max_model_len=10**6)


def test_faults_that_only_the_engine_finds_are_one_line_too(tmp_path: Path) -> None:
    [line] = [
        line
        for line in failure("--device", "TPU", cache_dir=tmp_path).splitlines()
        if "TPU" in line
    ]

    assert line == "ouzel: device TPU is not available; available: CPU"


def test_options_that_are_right_serve(tmp_path: Path) -> None:
    template = MODEL_DIRECTORY / "chat_template.jinja"
    options = (
        "--max-model-len",
        "2048",
        "--chat-template",
        str(template),
        "--tool-parser",
        "hermes",
    )

    with serving(*options, cache_dir=tmp_path) as server:
        assert server.url
