"""The fields that OVMS reads in its own way mean the same in responses as in chats."""

import json
import logging
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import pytest

from ouzel.config import ServerConfig
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.requests import Json
from tests.api.serving import running_server
from tests.prompts.families import QWEN

PATH = "/v3/responses"
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'
RAW = f"<think>\nhm\n</think>\n\n{CALL}<|im_end|>"
TOOLS: Json = {
    "tools": [{"type": "function", "name": "get_weather", "parameters": {"type": "object"}}]
}


@pytest.fixture(scope="module")
def thinking() -> Iterator[httpx.Client]:
    setup = running_server(
        config=ServerConfig(profile="ovms"),
        chat_template=QWEN,
        output_format=OutputFormat(calls=HERMES, reasoning=THINKING_ONLY),
        has_lenient_formats=True,
    )
    with setup as server, server.client() as http:
        yield http


def body(said: str, **fields: object) -> Json:
    return {"model": "parrot", "input": said, **fields}


def post_response(http: httpx.Client, said: str, **fields: object) -> dict[str, Any]:
    answer = http.post(PATH, json=body(said, **fields))
    assert answer.status_code == 200, answer.text
    response: dict[str, Any] = answer.json()
    return response


def test_raw_output_is_one_message(thinking: httpx.Client) -> None:
    said = RAW.removesuffix("<|im_end|>")
    response = post_response(thinking, said, skip_special_tokens=False, **TOOLS)
    (item,) = response["output"]
    assert (item["type"], item["content"][0]["text"]) == ("message", RAW)

    streamed = thinking.post(PATH, json=body(said, stream=True, skip_special_tokens=False, **TOOLS))
    frames = [frame for frame in streamed.text.split("\n\n") if "data: {" in frame]
    events = [json.loads(frame[frame.index("data: ") + 6 :]) for frame in frames]
    assert (
        "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        == RAW
    )
    assert {
        event["item"]["type"] for event in events if event["type"] == "response.output_item.added"
    } == {"message"}


def test_reasoning_and_calls_are_items_otherwise(thinking: httpx.Client) -> None:
    response = post_response(thinking, RAW.removesuffix("<|im_end|>"), **TOOLS)
    assert [item["type"] for item in response["output"]] == ["reasoning", "function_call"]


def test_variables_that_the_template_does_not_read_have_no_effect(
    http: httpx.Client, ovms: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel.prompts")
    for fields in ({"chat_template_kwargs": {"colour": "red"}}, {"reasoning": {"effort": "high"}}):
        assert post_response(ovms, "Hi", **fields)["output"][0]["content"][0]["text"] == "Hi"
        assert http.post(PATH, json=body("Hi", **fields)).status_code == 400
    assert [record.getMessage() for record in caplog.records] == [
        "the chat template does not read 'chat_template_kwargs.colour'",
        "the chat template does not read 'reasoning_effort'",
    ]


def test_a_lone_diversity_penalty_has_no_effect(http: httpx.Client, ovms: httpx.Client) -> None:
    assert post_response(ovms, "Hi", diversity_penalty=1.0)["status"] == "completed"
    assert http.post(PATH, json=body("Hi", diversity_penalty=1.0)).status_code == 400


@pytest.mark.parametrize("stream", [False, True])
def test_a_format_that_cannot_be_made_is_dropped(thinking: httpx.Client, stream: bool) -> None:
    schema: Json = {"type": "array", "uniqueItems": True}
    for fields in (
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "any", "schema": schema},
            }
        },
        {"text": {"format": {"type": "json_schema", "name": "any", "schema": schema}}},
    ):
        answer = thinking.post(PATH, json=body("Hello", stream=stream, **fields))
        assert answer.status_code == 200, answer.text
        assert "uniqueItems" in answer.headers["x-ouzel-format-ignored"]
        assert '"text":"Hello"' in answer.text
