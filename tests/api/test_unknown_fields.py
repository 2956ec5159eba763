"""Unknown fields are ignored at every depth, and named in one line of the log."""

import logging
from collections.abc import Iterator

import httpx
import pytest

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat
from tests.api.requests import Json, chat
from tests.api.serving import running_server
from tests.prompts.families import QWEN

ADD: Json = {
    "name": "add",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer", "zeal": 1}}},
}
TOOL: Json = {"type": "function", "function": ADD}
NAMED: Json = {"type": "function", "function": {"name": "add"}}
ALLOWED: Json = {"type": "allowed_tools", "mode": "auto", "tools": [NAMED]}


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    """Yields a client of a server whose model can call tools."""
    with (
        running_server(chat_template=QWEN, output_format=OutputFormat(calls=HERMES)) as server,
        server.client() as http,
    ):
        yield http


def ignored(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = [
        record.getMessage() for record in caplog.records if record.name == "ouzel.wire.decode"
    ]
    assert all(message.startswith("ignored fields: ") for message in messages)
    return [message.removeprefix("ignored fields: ") for message in messages]


def tools(first: Json, second: Json | None = None, **fields: object) -> Json:
    return {"tools": [first, *([] if second is None else [second])], **fields}


CASES: list[tuple[str, Json, str]] = [
    ("chat/completions", chat("Hi", zeal=1, fervour=2), "'fervour', 'zeal'"),
    ("chat/completions", chat("Hi", **tools(TOOL | {"colour": 1})), "'tools[0].colour'"),
    (
        "chat/completions",
        chat(
            "Hi",
            **tools(
                TOOL,
                {"type": "function", "function": {"name": "b", "params": {}, "strickt": True}},
                x=1,
            ),
        ),
        "'tools[1].function.params', 'tools[1].function.strickt', 'x'",
    ),
    ("chat/completions", chat("Hi", functions=[ADD | {"colour": None}]), "'functions[0].colour'"),
    (
        "chat/completions",
        chat(
            "Hi",
            **tools(
                TOOL,
                tool_choice=ALLOWED | {"tools": [NAMED | {"function": {"name": "add", "z": 1}}]},
            ),
        ),
        "'tool_choice.tools[0].function.z'",
    ),
    # the template reads the tools as the request has them
    (
        "tokenize",
        chat("Hi", **tools(TOOL | {"colour": 1}, zeal=2)),
        "'zeal'",
    ),
    ("detokenize", {"tokens": [65], "zeal": 2}, "'zeal'"),
    ("completions", {"model": "parrot", "prompt": "a", "max_tokens": 1, "zeal": 2}, "'zeal'"),
    (
        "responses",
        {
            "model": "parrot",
            "input": "Hi",
            "store": False,
            "text": {"format": {"type": "text", "colour": 1}},
        },
        "'text.format.colour'",
    ),
    (
        "responses",
        {
            "model": "parrot",
            "input": "Hi",
            "store": False,
            **tools({"type": "function", "name": "a", "colour": 1}),
        },
        "'tools[0].colour'",
    ),
    ("../invocations", chat("Hi", **tools(TOOL | {"colour": 1})), "'tools[0].colour'"),
    ("../invocations", {"inputs": "Hi", "zeal": 1, "parameters": {"max_new_tokens": 1}}, "'zeal'"),
    ("chat/completions", chat("Hi", **tools(TOOL | {"x" * 100: 1})), f"'tools[0].{'x' * 40}'"),
]


@pytest.mark.parametrize(("path", "body", "names"), CASES)
def test_unknown_fields_are_named_in_one_line(
    http: httpx.Client, caplog: pytest.LogCaptureFixture, path: str, body: Json, names: str
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")

    response = http.post(f"/v1/{path}", json=body)

    assert response.status_code == 200, response.text
    assert ignored(caplog) == [names]


@pytest.mark.parametrize(
    "fields",
    [
        tools(TOOL, tool_choice="auto"),
        tools(TOOL, tool_choice=ALLOWED),
        {"functions": [ADD], "function_call": "auto"},
        {"metadata": {"zeal": "1"}, "chat_template_kwargs": {"enable_thinking": False}},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "Hi", "zeal": 1}],
                    "colour": 1,
                }
            ]
        },
        {"stream": True, "stream_options": {"include_usage": True}},
    ],
)
def test_objects_with_free_keys_have_no_unknown_fields(
    http: httpx.Client, caplog: pytest.LogCaptureFixture, fields: Json
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")

    assert http.post("/v1/chat/completions", json=chat("Hi", **fields)).status_code == 200
    assert ignored(caplog) == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (
            {"stream": True, "stream_options": {"include_usages": True}},
            "stream_options.include_usages",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {}, "strickt": True},
                }
            },
            "response_format.json_schema.strickt",
        ),
        ({"structured_outputs": {"regexp": "a"}}, "structured_outputs.regexp"),
    ],
)
def test_an_unknown_field_that_would_change_the_request_is_refused(
    http: httpx.Client, fields: Json, param: str
) -> None:
    response = http.post("/v1/chat/completions", json=chat("Hi", **fields))

    assert response.status_code == 400
    assert response.json()["error"]["param"] == param
