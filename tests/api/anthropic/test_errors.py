"""Errors have the status and type that Anthropic's documentation gives, and name the field."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import LimitsConfig, ServerConfig
from tests.api.anthropic.exchanges import LOOK, PATH, Json, build_request, read_error
from tests.api.malformed import malformed_requests
from tests.api.serving import running_server

CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}


def build_message(role: str, *blocks: object) -> Json:
    return {"messages": [{"role": role, "content": list(blocks)}]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_tokens": None}, "max_tokens must be an integer, given null"),
        ({"max_tokens": -2}, "max_tokens must be >= 0, given -2"),
        ({"messages": []}, "messages must have a length >= 1, given []"),
        ({"messages": "Hi"}, 'messages must be a list, given "Hi"'),
        (
            {"messages": [{"role": "tool", "content": "x"}]},
            'messages[0].role must be one of "user", "assistant", "s',
        ),
        (
            build_message("user", {"type": "image", "source": {"type": "url", "url": "x"}}),
            "messages[0].content[0].type must be",
        ),
        (build_message("user", {"type": "text"}), "messages[0].content[0].text is required"),
        (build_message("user", {"text": "x"}), "messages[0].content[0].type is required"),
        (build_message("user", CALL), 'messages[0].content[0].type must be one of "text"'),
        (
            build_message("user", {"type": "tool_result", "tool_use_id": "toolu_9"}),
            "messages[0].content[0].tool_use_id must be",
        ),
        (
            build_message("assistant", {"type": "code_execution_tool_result", "id": "x"}),
            "messages[0].content[0].type must be the type of a te",
        ),
        (
            build_message("assistant", CALL),
            'messages[0] must be followed by the result of the tool call "toolu_1"',
        ),
        (
            build_message("user", {"type": "document", "source": {"type": "url", "url": "x"}}),
            "messages[0].content[0].source.ur",
        ),
        ({"system": 1}, "system must be a string or a list, given 1"),
        ({"tools": [{"name": "look"}]}, "tools[0].input_schema is required"),
        (
            {"tools": [{"name": "a b", "input_schema": {"type": "object"}}]},
            "tools[0].name must match",
        ),
        ({"tools": [LOOK, LOOK]}, "tools[1].name must be unique, given 'look' again"),
        (
            {"tools": [LOOK | {"input_schema": {"type": "array"}}]},
            'tools[0].input_schema.type must be "object"',
        ),
        (
            {"tools": [LOOK | {"allowed_callers": ["x"]}]},
            'tools[0].allowed_callers must have "direct"',
        ),
        ({"tool_choice": {"type": "any"}}, "tool_choice needs tools"),
        (
            {"tools": [LOOK], "tool_choice": {"type": "tool", "name": "x"}},
            "tool_choice must name one of the tools",
        ),
        (
            {"tool_choice": {"type": "all"}},
            'tool_choice.type must be one of "auto", "any", "tool", "none", given "a',
        ),
        ({"stop_sequences": [""]}, "stop_sequences[0] must have a length >= 1"),
        ({"temperature": 3}, "temperature must be <= 2.0, given 3"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 100}},
            "thinking.budget_tokens must be >= 1024, given 100",
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            "thinking.budget_tokens must be < 400, which is max",
        ),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens is required"),
        (
            {"output_config": {"effort": "huge"}},
            'output_config.effort must be one of "high", "low", "max", "medium"',
        ),
        (
            {"output_config": {"format": {"type": "xml"}}},
            'output_config.format.type must be one of "json_schema"',
        ),
        (
            {"output_config": {"format": {"type": "json_schema"}}},
            "output_config.format.schema is required",
        ),
        (
            {
                "output_config": {
                    "format": {"type": "json_schema", "schema": {"not": {"type": "null"}}}
                }
            },
            "output_config.format.schema",
        ),
        (
            {"context_management": {"edits": [{"type": "compact_20260112"}]}},
            "context_management.edits[0].type must be",
        ),
        ({"mcp_servers": [{"type": "url"}]}, "mcp_servers[0].name is required"),
        ({"container": "x"}, 'container is not supported here, given "x"'),
        ({"n": 2}, "n is not supported here, given 2"),
        ({"n": 0}, "n is not supported here, given 0"),
        (
            {"tools": [LOOK], "parallel_tool_calls": False},
            "parallel_tool_calls is not supported here"
            " (use tool_choice.disable_parallel_tool_use), given false",
        ),
        ({"skip_special_tokens": False}, "skip_special_tokens is not supported here, given false"),
        (
            {"thinking_token_budget": 0},
            "thinking_token_budget is not supported here (use thinking.budget_tokens), given 0",
        ),
        ({"stop": ["a"]}, 'stop is not supported here (use stop_sequences), given ["a"]'),
        ({"logprobs": True}, "logprobs is not supported"),
        ({"reasoning_effort": "low"}, "reasoning_effort is not supported"),
    ],
)
def test_wrong_fields_are_named(http: httpx.Client, fields: Json, message: str) -> None:
    status, kind, text = read_error(http.post(PATH, json={**build_request("Hi"), **fields}))
    assert (status, kind) == (400, "invalid_request_error")
    assert text.startswith(message)


def test_reasons_are_given_for_blocks_that_cannot_be_read(http: httpx.Client) -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"},
    }
    inner = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [image]}
    for block, place in (
        (image, "messages[0].content[0].type"),
        (inner, "messages[0].content[0].content[0].type"),
    ):
        _, _, text = read_error(
            http.post(PATH, json=build_request("Hi") | build_message("user", block))
        )
        assert text.startswith(place) and text.endswith('given "image": this model reads no images')


@pytest.mark.parametrize("path", [PATH, f"{PATH}/count_tokens"])
def test_no_malformed_request_is_more_than_refused(http: httpx.Client, path: str) -> None:
    good = build_request("Hi", tools=[LOOK])
    complaints = []
    for request in malformed_requests(path, good):
        response = http.post(path, json=request.body)
        if response.status_code == 200 and request.what.endswith("huge"):
            continue  # a limit beyond the context becomes the rest of the context
        if response.status_code != 400 or read_error(response)[1] != "invalid_request_error":
            complaints.append(
                f"{request.field} ({request.what}): {response.status_code} {response.text[:200]}"
            )
    assert not complaints


@pytest.mark.parametrize(
    "body", ["", "{", "[]", '{"a":' * 100_000, '{"a": "\xff"}'.encode("latin-1")]
)
def test_a_body_that_is_no_json_object_is_refused(http: httpx.Client, body: str | bytes) -> None:
    assert read_error(http.post(PATH, content=body))[:2] == (400, "invalid_request_error")


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx.Client]:
    limits = LimitsConfig(max_body_bytes=1000)
    with (
        running_server(limits=limits, config=ServerConfig(api_key=("sk-right",))) as server,
        server.client() as http,
    ):
        yield http


def test_each_status_has_its_type(guarded: httpx.Client) -> None:
    key = {"x-api-key": "sk-right"}
    unknown = build_request("Hi", model="claude-opus-9")
    answers = {
        "authentication_error": (
            401,
            guarded.post(PATH, json=build_request("Hi"), headers={"x-api-key": "sk-wrong"}),
        ),
        "not_found_error": (404, guarded.post(PATH, json=unknown, headers=key)),
        "request_too_large": (413, guarded.post(PATH, json=build_request("x" * 2000), headers=key)),
        "invalid_request_error": (405, guarded.put(PATH, json=build_request("Hi"), headers=key)),
    }
    for kind, (status, response) in answers.items():
        assert read_error(response)[:2] == (status, kind)
    assert guarded.post(PATH, json=build_request("Hi"), headers=key).status_code == 200
    assert (
        guarded.post(
            PATH, json=build_request("Hi"), headers={"authorization": "Bearer sk-right"}
        ).status_code
        == 200
    )


def test_paths_below_and_models_have_them_too(guarded: httpx.Client) -> None:
    version = {"anthropic-version": "2023-06-01", "x-api-key": "sk-right"}
    assert read_error(guarded.get(f"{PATH}/drafts", headers=version))[:2] == (
        404,
        "not_found_error",
    )
    assert read_error(guarded.get("/v1/models/claude", headers=version))[:2] == (
        404,
        "not_found_error",
    )
    assert read_error(guarded.get("/v1/models", headers={"anthropic-version": "1"}))[:2] == (
        401,
        "authentication_error",
    )


def test_values_that_ask_for_nothing_and_hints_are_taken(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    neutral = {
        "n": 1,
        "stop": None,
        "logprobs": False,
        "skip_special_tokens": True,
        "response_format": None,
    }
    hints = {
        "diagnostics": {"previous_message_id": None},
        "service_tier": "standard_only",
        "user": "me",
    }
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    effort = {"effort": "high"}
    with caplog.at_level("INFO"):
        fields = {
            **neutral,
            **hints,
            "context_management": edits,
            "output_config": effort,
            "colour": "blue",
        }
        assert http.post(PATH, json=build_request("Hi", **fields)).status_code == 200
    assert (
        "accepted without effect: user" in caplog.text
        and "taken as hints: diagnostics" in caplog.text
    )
    assert "accepted without effect: output_config.effort" in caplog.text
    assert "ignored fields: 'colour'" in caplog.text


def test_a_server_with_too_much_to_do_is_overloaded() -> None:
    form = {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}
    with (
        running_server(engine_factory="create_grammar_timeout_engine") as server,
        server.client() as http,
    ):
        response = http.post(PATH, json=build_request("Hi", **form))
    assert read_error(response)[:2] == (529, "overloaded_error")
    assert response.headers["retry-after"] == "5"
