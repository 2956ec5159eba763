"""Each client is started with settings that lead it to the server, its model and its context."""

import json
import tomllib
from typing import Any  # JSON

import pytest
import yaml

from ouzel.launch.table import CLIENTS
from tests.launch.launching import (
    CATALOGUE,
    OF_THE_USER,
    Machine,
    ModelServer,
    Started,
    model_server,
)

KEY = "sk-a-secret-of-the-server"


def launch(machine: Machine, client: str, url: str, *arguments: str) -> Started:
    machine.install(client)
    ended = machine.launch(client, "--url", url, *arguments, "--", "--own", "a question")
    assert (ended.status, ended.output) == (0, "answer of the client\n"), ended.errors
    started = machine.started()
    assert started is not None
    assert started.arguments[-2:] == ["--own", "a question"]
    return started


def read_json(machine: Machine, client: str, name: str) -> Any:
    return json.loads((machine.settings(client) / name).read_text())


def test_claude_code(machine: Machine, server: ModelServer) -> None:
    started = launch(machine, "claude", server.url)

    directory = machine.settings("claude")
    assert started.arguments[:-2] == ["--settings", str(directory / "ouzel-settings.json")]
    assert started.variables["CLAUDE_CONFIG_DIR"] == str(directory)
    assert started.variables["ANTHROPIC_BASE_URL"] == server.url
    assert started.variables["ANTHROPIC_AUTH_TOKEN"] == "none"
    assert not started.variables.keys() & OF_THE_USER.keys()
    settings = read_json(machine, "claude", "ouzel-settings.json")["env"]
    assert settings["ANTHROPIC_BASE_URL"] == server.url
    assert {value for name, value in settings.items() if name.endswith("_MODEL")} == {"m"}
    assert settings["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "32768"
    assert settings["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "4096"


def read_codex_settings(started: Started) -> dict[str, Any]:
    """Reads the settings in the flags, each of which is a line of TOML."""
    flags, values = started.arguments[:-2:2], started.arguments[1:-2:2]
    assert set(flags) == {"-c"}
    return tomllib.loads("\n".join(values))


def test_codex(machine: Machine, server: ModelServer) -> None:
    started = launch(machine, "codex", server.url)

    directory = machine.settings("codex")
    assert started.variables["CODEX_HOME"] == str(directory)
    assert read_codex_settings(started) == {
        "model": "m",
        "model_provider": "ouzel",
        "model_catalog_json": str(directory / "ouzel-models.json"),
        "model_context_window": 32768,
        "model_providers": {
            "ouzel": {"name": "Ouzel", "base_url": f"{server.url}/v1", "wire_api": "responses"}
        },
    }
    assert read_json(machine, "codex", "ouzel-models.json") == CATALOGUE


def test_codex_without_a_catalogue_of_the_server(machine: Machine) -> None:
    listed = {"data": [{"id": 'a "model"\\\x7f', "max_model_len": 4096}]}
    with model_server(listed=listed) as server:
        started = launch(machine, "codex", server.url)

    assert list(machine.settings("codex").glob("ouzel*")) == []
    settings = read_codex_settings(started)
    assert settings["model"] == 'a "model"\\\x7f'
    assert "model_catalog_json" not in settings


def test_opencode(machine: Machine, server: ModelServer) -> None:
    started = launch(machine, "opencode", server.url, "--model", "org/other")

    path = machine.settings("opencode") / "opencode.json"
    choice = {"model": "ouzel/org/other", "small_model": "ouzel/org/other"}
    assert started.arguments[:-2] == []
    assert started.variables["OPENCODE_CONFIG"] == str(path)
    assert json.loads(started.variables["OPENCODE_CONFIG_CONTENT"]) == choice
    assert read_json(machine, "opencode", "opencode.json") == {
        "$schema": "https://opencode.ai/config.json",
        **choice,
        "provider": {
            "ouzel": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Ouzel",
                "options": {"baseURL": f"{server.url}/v1", "apiKey": "none"},
                "models": {
                    "org/other": {
                        "name": "org/other",
                        "limit": {"context": 8192, "output": 2048},
                    }
                },
            }
        },
    }


def test_qwen_code(machine: Machine, server: ModelServer) -> None:
    started = launch(machine, "qwen", server.url)

    path = machine.settings("qwen") / "settings.json"
    assert started.arguments[:-2] == ["--auth-type", "openai"]
    assert started.variables["QWEN_CODE_SYSTEM_SETTINGS_PATH"] == str(path)
    assert started.variables["OPENAI_BASE_URL"] == f"{server.url}/v1"
    assert started.variables["OPENAI_API_KEY"] == "none"
    assert started.variables["OPENAI_MODEL"] == "m"
    settings = read_json(machine, "qwen", "settings.json")
    assert settings["security"] == {"auth": {"selectedType": "openai"}}
    assert settings["model"]["name"] == "m"
    assert settings["model"]["generationConfig"] == {
        "contextWindowSize": 32768,
        "timeout": 600000,
        "samplingParams": {"max_tokens": 4096},
    }


def test_aider(machine: Machine, server: ModelServer) -> None:
    started = launch(machine, "aider", server.url)

    path = machine.settings("aider") / "model-metadata.json"
    assert started.arguments[:-2] == [
        *("--model", "openai/m"),
        *("--openai-api-base", f"{server.url}/v1"),
        *("--model-metadata-file", str(path)),
        "--no-show-model-warnings",
    ]
    assert started.variables["OPENAI_API_KEY"] == "none"
    assert read_json(machine, "aider", "model-metadata.json") == {
        "openai/m": {
            "max_input_tokens": 28672,
            "max_output_tokens": 4096,
            "litellm_provider": "openai",
            "mode": "chat",
        }
    }


def test_continue(machine: Machine, server: ModelServer) -> None:
    started = launch(machine, "continue", server.url)

    path = machine.settings("continue") / "config.yaml"
    assert started.arguments[:-2] == ["--config", str(path)]
    assert yaml.safe_load(path.read_text()) == {
        "name": "Ouzel",
        "version": "1.0.0",
        "schema": "v1",
        "models": [
            {
                "name": "Ouzel",
                "provider": "openai",
                "model": "m",
                "apiBase": f"{server.url}/v1",
                "apiKey": "none",
                "roles": ["chat", "edit", "apply"],
                "capabilities": ["tool_use"],
                "defaultCompletionOptions": {"contextLength": 32768, "maxTokens": 4096},
            }
        ],
    }


# The setting by which a client finds the key in a variable; None: the client reads it by itself.
KEY_SETTINGS = {
    "claude": None,
    "codex": 'env_key = "OPENAI_API_KEY"',
    "opencode": '"apiKey": "{env:OPENAI_API_KEY}"',
    "qwen": None,
    "aider": None,
    "continue": "apiKey: ${{ secrets.OPENAI_API_KEY }}",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_key_is_in_a_variable_and_neither_in_files_nor_flags_nor_shown(
    machine: Machine, client: str
) -> None:
    machine.install(client)
    with model_server(api_key=KEY) as server:
        ended = machine.launch(client, "--url", server.url, "--api-key", KEY)

    started = machine.started()
    assert started is not None, ended.errors
    name = "ANTHROPIC_AUTH_TOKEN" if client == "claude" else "OPENAI_API_KEY"
    assert started.variables[name] == KEY
    assert KEY not in ended.output + ended.errors
    texts = [path.read_text() for path in machine.settings(client).iterdir()]
    texts += started.arguments
    assert texts
    assert not [text for text in texts if KEY in text]
    setting = KEY_SETTINGS[client]
    assert setting is None or [text for text in texts if setting in text]
