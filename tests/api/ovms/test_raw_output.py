"""`skip_special_tokens: false` turns the parsers off and returns the model's text unchanged."""

from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import pytest

from ouzel.config import ServerConfig
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.requests import Json, chat, join_content, read_events
from tests.api.serving import running_server
from tests.prompts.families import QWEN

CHAT = "/v3/chat/completions"
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'
SAID = f"<think>\nhm\n</think>\n\n{CALL}"
TOOLS: Json = {
    "tools": [
        {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    ]
}
END = "<|im_end|>"


@pytest.fixture(scope="module")
def thinking() -> Iterator[httpx.Client]:
    output_format = OutputFormat(calls=HERMES, reasoning=THINKING_ONLY)
    config = ServerConfig(profile="ovms")
    setup = running_server(config=config, chat_template=QWEN, output_format=output_format)
    with setup as server, server.client() as http:
        yield http


def post_chat(http: httpx.Client, said: str, **fields: object) -> dict[str, Any]:
    response = http.post(CHAT, json=chat(said, **fields))
    assert response.status_code == 200, response.text
    choice: dict[str, Any] = response.json()["choices"][0]
    return choice


def test_calls_and_reasoning_stay_in_the_text(thinking: httpx.Client) -> None:
    choice = post_chat(thinking, SAID, skip_special_tokens=False, **TOOLS)
    assert choice["message"]["content"] == SAID + END
    assert (choice["message"]["tool_calls"], choice["finish_reason"]) == ([], "stop")
    assert not choice["message"]["reasoning_content"]


def test_a_stream_shows_the_same_text(thinking: httpx.Client) -> None:
    events = read_events(
        thinking.post(CHAT, json=chat(SAID, stream=True, skip_special_tokens=False, **TOOLS))
    )
    assert join_content(events) == SAID + END
    assert not any(
        '"tool_calls":[' in event or '"finish_reason":"tool_calls"' in event for event in events
    )


def test_without_tools_reasoning_stays_in_the_text_too(thinking: httpx.Client) -> None:
    assert post_chat(thinking, SAID, skip_special_tokens=False)["message"]["content"] == SAID + END


@pytest.mark.parametrize("skips", [True, None])
def test_the_parsers_work_otherwise(thinking: httpx.Client, skips: bool | None) -> None:
    choice = post_chat(thinking, SAID, skip_special_tokens=skips, **TOOLS)
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert (choice["message"]["reasoning_content"], choice["finish_reason"]) == ("hm", "tool_calls")


def test_json_without_marks_is_no_call(thinking: httpx.Client) -> None:
    bare = '{"name": "get_weather", "arguments": {}}'
    choice = post_chat(thinking, bare, skip_special_tokens=False, **TOOLS)
    assert (choice["message"]["content"], choice["finish_reason"]) == (bare + END, "stop")


def test_a_call_that_must_come_is_forced_and_shown_as_text() -> None:
    config = ServerConfig(profile="ovms")
    setup = running_server(
        config=config,
        chat_template=QWEN,
        output_format=OutputFormat(calls=HERMES),
        engine_factory="create_grammar_parrot",
    )
    with setup as server, server.client() as http:
        choice = post_chat(
            http,
            "Hello",
            temperature=0,
            skip_special_tokens=False,
            tool_choice="required",
            max_tokens=50,
            **TOOLS,
        )
    assert choice["message"]["content"].startswith(
        '<tool_call>\n{"name": "get_weather", "arguments": {'
    )
    assert choice["message"]["tool_calls"] == []


def test_the_default_profile_still_tells_calls_apart() -> None:
    setup = running_server(chat_template=QWEN, output_format=OutputFormat(calls=HERMES))
    with setup as server, server.client() as http:
        choice = post_chat(http, CALL, skip_special_tokens=False, **TOOLS)
    assert choice["finish_reason"] == "tool_calls"
