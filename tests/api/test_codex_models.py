"""`/v1/models` has Codex's catalogue for requests with Codex's query, and for no others."""

from pathlib import Path
from typing import Any  # JSON

import httpx
import pytest

from ouzel.parsers.registry import choose_output_format
from ouzel.prompts.chat_rendering import list_reasoning_efforts
from ouzel.prompts.chat_template import ChatTemplate
from tests.api.seeing import seeing_server
from tests.api.serving import running_server
from tests.prompts.families import QWEN

QUERY = {"client_version": "0.171.0"}
# the fields without which Codex 0.171 refuses the whole list
REQUIRED = {
    "slug": str,
    "display_name": str,
    "supported_reasoning_levels": list,
    "shell_type": str,
    "visibility": str,
    "supported_in_api": bool,
    "priority": int,
    "base_instructions": str,
    "support_verbosity": bool,
    "truncation_policy": dict,
    "experimental_supported_tools": list,
}


def read_catalogue(http: httpx.Client) -> list[dict[str, Any]]:
    models = http.get("/v1/models", params=QUERY).json()["models"]
    assert isinstance(models, list)
    return models


def test_a_model_that_calls_tools_is_described_by_each_of_its_names() -> None:
    with (
        running_server(
            names=("org/agent", "agent"),
            chat_template=QWEN,
            output_format=choose_output_format(QWEN),
        ) as server,
        server.client() as http,
    ):
        catalogue = read_catalogue(http)

    assert [model["slug"] for model in catalogue] == ["org/agent", "agent"]
    assert [model["priority"] for model in catalogue] == [0, 1]
    for model in catalogue:
        assert {name: type(model[name]) for name in REQUIRED} == REQUIRED
        assert model["context_window"] == 4096
        assert model["truncation_policy"] == {"mode": "tokens", "limit": 512}
        assert model["input_modalities"] == ["text"]
        efforts = [level["effort"] for level in model["supported_reasoning_levels"]]
        assert efforts == ["none", "medium"]
        assert model["default_reasoning_level"] == "medium"
        assert all(level["description"] for level in model["supported_reasoning_levels"])


def test_a_model_that_cannot_call_tools_is_left_out(http: httpx.Client) -> None:
    assert read_catalogue(http) == []


def test_other_clients_get_the_list_alone(http: httpx.Client) -> None:
    plain, asked = http.get("/v1/models").json(), http.get("/v1/models", params=QUERY).json()

    assert plain.keys() == {"object", "data"}
    assert {name: asked[name] for name in plain} == plain


def test_a_model_that_sees_takes_images(tmp_path: Path) -> None:
    with seeing_server(tmp_path, max_model_len=1000) as server, server.client() as http:
        catalogue = read_catalogue(http)

    assert catalogue
    assert {tuple(model["input_modalities"]) for model in catalogue} == {("text", "image")}


@pytest.mark.parametrize(
    ("read", "efforts"),
    [
        ("", ()),
        ("{{ enable_thinking }}", ("none", "medium")),
        ("{{ thinking }}", ("none", "medium")),
        ("{{ reasoning_effort }}", ("low", "medium", "high")),
        ("{{ reasoning_effort }}{{ thinking }}", ("none", "low", "medium", "high")),
    ],
)
def test_the_efforts_are_those_that_change_the_prompt(read: str, efforts: tuple[str, ...]) -> None:
    source = "{% for message in messages %}{{ message.content }}{% endfor %}" + read

    assert list_reasoning_efforts(ChatTemplate({"default": source}, {})) == efforts
