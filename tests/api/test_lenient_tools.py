"""--lenient-formats drops the schemas of tools that cannot be honoured."""

import json
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import pytest

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat
from tests.api.lenient import (
    CHAT,
    HEADER,
    LOOKS_AHEAD,
    SAID,
    SAYS_YES,
    UNIQUE,
    schema_format,
    serve_lenient_formats,
    tool,
)
from tests.api.requests import Json, chat, read_error
from tests.api.serving import running_server
from tests.prompts.families import QWEN


@pytest.fixture(scope="module")
def lenient() -> Iterator[httpx.Client]:
    with serve_lenient_formats() as server, server.client() as http:
        yield http


def called(http: httpx.Client, *tools: Json, **fields: object) -> tuple[dict[str, Any], str]:
    """Returns the only call of an answer, and the warning's header."""
    asked: Json = {
        "temperature": 0,
        "max_tokens": 200,
        "tools": [*tools],
        "tool_choice": "required",
        **fields,
    }
    answer = http.post(CHAT, json=chat(SAID, **asked))
    assert answer.status_code == 200, answer.text
    (call,) = answer.json()["choices"][0]["message"]["tool_calls"]
    function: dict[str, Any] = call["function"]
    return function, answer.headers.get(HEADER, "")


def test_a_call_that_must_come_is_forced_without_the_schema_that_cannot_be_honoured(
    lenient: httpx.Client,
) -> None:
    bad = tool(
        "add",
        {
            "type": "object",
            "properties": {"numbers": {"pattern": "(?=a)"}},
            "required": ["numbers"],
        },
    )
    call, header = called(
        lenient, bad, tool_choice={"type": "function", "function": {"name": "add"}}
    )
    assert call["name"] == "add"
    assert isinstance(json.loads(call["arguments"]), dict)
    assert header.startswith("tools: function 'add': ")


def test_the_schemas_of_other_tools_still_count(lenient: httpx.Client) -> None:
    bad = tool("add", {"type": "object", "properties": {"numbers": UNIQUE}})
    good = tool("say", SAYS_YES)
    call, header = called(lenient, bad, good, parallel_tool_calls=False)
    assert (call["name"], json.loads(call["arguments"])["word"]) == ("say", "yes")
    assert header.startswith("tools: function 'add': ")


def test_a_format_counts_beside_a_tool_whose_schema_does_not(lenient: httpx.Client) -> None:
    bad = tool("add", {"type": "object", "properties": {"numbers": UNIQUE}})
    asked = chat("7", temperature=0, tools=[bad], **schema_format({"const": 7}))
    answer = lenient.post(CHAT, json=asked)
    assert answer.json()["choices"][0]["message"]["content"] == "7"
    assert answer.headers[HEADER].startswith("tools: function 'add': ")


def test_a_tool_counts_beside_a_format_that_does_not(lenient: httpx.Client) -> None:
    good = tool("say", SAYS_YES)
    call, header = called(lenient, good, parallel_tool_calls=False, **schema_format(LOOKS_AHEAD))
    assert (call["name"], json.loads(call["arguments"])["word"]) == ("say", "yes")
    assert header == ""  # a forced call excludes the format from the start


def test_strict_and_guided_tools_are_offered_without_their_schemas(lenient: httpx.Client) -> None:
    parameters: Json = {
        "type": "object",
        "properties": {"numbers": UNIQUE},
        "required": ["numbers"],
    }
    for fields in (
        {"tools": [tool("add", parameters, strict=True)]},
        {"enable_tool_guided_generation": True},
    ):
        asked = chat("Hello", temperature=0, **{"tools": [tool("add", parameters)], **fields})
        answer = lenient.post(CHAT, json=asked)
        assert answer.json()["choices"][0]["message"]["content"] == "Hello"
        assert answer.headers[HEADER].startswith("tools: function 'add': ")


def test_without_the_option_each_is_refused_and_names_the_tool(http: httpx.Client) -> None:
    answer = http.post(CHAT, json=chat("Hello", **schema_format(LOOKS_AHEAD)))
    assert (answer.status_code, HEADER in answer.headers) == (400, False)
    setup = running_server(chat_template=QWEN, output_format=OutputFormat(calls=HERMES))
    with setup as server, server.client() as client:
        bad = tool("add", {"type": "object", "properties": {"numbers": UNIQUE}})
        beside = client.post(CHAT, json=chat("Hello", tools=[bad], **schema_format({"const": 7})))
    assert (beside.status_code, read_error(beside)["param"]) == (400, "tools")
