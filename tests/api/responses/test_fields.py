"""Fields of a response are refused, are taken without an effect, or change the answer."""

import logging
from collections.abc import Iterator

import httpx
import pytest

from tests.api.requests import Json, read_error
from tests.api.responses.strict import strict_end, strict_response
from tests.api.serving import RunningServer, running_server

REFUSED: list[tuple[Json, str, str]] = [
    ({"store": True}, "store", "true"),
    ({"background": True}, "background", "must be false: this server stores nothing"),
    ({"previous_response_id": "resp_1"}, "previous_response_id", "resp_1"),
    ({"conversation": "conv_1"}, "conversation", "conv_1"),
    ({"context_management": [{"type": "clearing"}]}, "context_management[0].type", "clearing"),
    ({"context_management": [{"type": "compaction"}] * 2}, "context_management", "<= 1"),
    (
        {"context_management": [{"type": "compaction", "compact_threshold": 0}]},
        "context_management[0].compact_threshold",
        "0",
    ),
    (
        {"context_management": [{"type": "compaction"}], "continue_final_message": True},
        "context_management",
        "continue_final_message",
    ),
    ({"moderation": {"model": "omni"}}, "moderation", "omni"),
    ({"include": ["reasoning"]}, "include[0]", '"reasoning"'),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type", "web_search"),
    ({"tools": [{"type": "function"}]}, "tools[0].function", "required"),
    ({"tool_choice": {"type": "web_search_preview"}}, "tool_choice", "needs tools"),
    ({"tool_choice": {"type": "magic"}}, "tool_choice.type", 'given "magic"'),
    ({"tool_choice": "required"}, "tool_choice", "tools"),
    (
        {"text": {"format": {"type": "grammar"}}},
        "text.format.type",
        '"json_object", "json_schema", given "grammar"',
    ),
    ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema", "required"),
    (
        {"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}},
        "text.format.name",
        "a b",
    ),
    ({"text": {"verbosity": "some"}}, "text.verbosity", "some"),
    ({"text": {"tone": "low"}}, "text.tone", "low"),
    ({"reasoning": {"effort": "high"}}, "reasoning.effort", "reasoning_effort"),
    ({"reasoning": {"effort": "much"}}, "reasoning.effort", "much"),
    ({"reasoning": {"summary": "brief"}}, "reasoning.summary", "brief"),
    ({"top_logprobs": 2}, "top_logprobs", "2"),
    ({"top_logprobs": 21, "logprobs": True}, "top_logprobs", "20"),
    ({"max_output_tokens": 0}, "max_output_tokens", "0"),
    ({"max_tokens": 0}, "max_tokens", "0"),
    ({"metadata": {"x" * 65: "y"}}, "metadata", "length <= 64"),
    ({"metadata": {"x": "y" * 513}}, "metadata.x", "512"),
    (
        {"stream": False, "stream_options": {"include_obfuscation": False}},
        "stream_options",
        "stream",
    ),
    ({"stream": True, "stream_options": {"usage": True}}, "stream_options.usage", "true"),
    ({"stream": True, "n": 2}, "n", "2"),
    ({"truncation": "auto", "truncate_prompt_tokens": 5}, "truncation", "auto"),
    ({"prompt_logprobs": 1}, "prompt_logprobs", "1"),
    ({"return_token_ids": True, "n": 2}, "n", "2"),
    ({"messages": []}, "messages", "[]"),
    ({"functions": [{"name": "x"}]}, "functions", "x"),
]


@pytest.mark.parametrize("fields", REFUSED, ids=lambda case: str(case[0]))
@pytest.mark.parametrize("is_stream", [False, True])
def test_an_unsupported_field_is_a_400_that_names_it(
    http: httpx.Client, fields: tuple[Json, str, str], is_stream: bool
) -> None:
    given, param, told = fields
    answer = http.post(
        "/v1/responses", json={"model": "parrot", "input": "Hi", "stream": is_stream, **given}
    )
    error = read_error(answer)
    assert (answer.status_code, error["type"], error["param"]) == (
        400,
        "invalid_request_error",
        param,
    )
    assert (
        param.rpartition(".")[2].partition("[")[0] in error["message"] and told in error["message"]
    )


NEUTRAL: list[Json] = [
    {"store": False},
    {
        "store": None,
        "background": False,
        "previous_response_id": None,
        "conversation": None,
        "prompt": None,
    },
    {
        "service_tier": "flex",
        "include": [],
        "tools": [],
        "tool_choice": "auto",
        "truncation": "disabled",
    },
    {"text": {"format": {"type": "text"}, "verbosity": "medium"}, "reasoning": {}, "metadata": {}},
    {"reasoning": {"effort": "none", "summary": None}, "response_format": {"type": "text"}},
    {
        "prompt_cache_retention": "24h",
        "prompt_cache_options": {"mode": "implicit"},
        "user": "x",
        "safety_identifier": "y",
        "prompt_cache_key": "z",
    },
]


@pytest.mark.parametrize("fields", NEUTRAL)
def test_a_field_without_effect_is_accepted(http: httpx.Client, fields: Json) -> None:
    answer = http.post("/v1/responses", json={"model": "parrot", "input": "Hi", **fields})
    assert strict_response(answer.text).output_text == "Hi"


HINTS: list[tuple[Json, str]] = [
    ({"service_tier": "priority"}, "service_tier"),
    ({"service_tier": "flex"}, "service_tier"),
    ({"prompt_cache_retention": "24h"}, "prompt_cache_retention"),
    ({"prompt_cache_options": {"mode": "explicit", "ttl": "30m"}}, "prompt_cache_options"),
    ({"text": {"verbosity": "low"}}, "text.verbosity"),
    ({"reasoning": {"summary": "concise"}}, "reasoning.summary"),
    ({"reasoning": {"generate_summary": "concise"}}, "reasoning.summary"),
    ({"client_metadata": {"a": "b"}}, "client_metadata"),
]


@pytest.mark.parametrize("hint", HINTS, ids=lambda case: str(case[0]))
def test_hints_are_taken_and_named_in_the_log(
    http: httpx.Client, hint: tuple[Json, str], caplog: pytest.LogCaptureFixture
) -> None:
    fields, name = hint
    with caplog.at_level(logging.INFO, "ouzel"):
        answer = http.post("/v1/responses", json={"model": "parrot", "input": "Hi", **fields})
    response = strict_response(answer.text)
    assert (response.output_text, response.service_tier) == ("Hi", "default")
    assert name in caplog.text


def test_a_stream_always_has_the_usage_that_some_ask_for(http: httpx.Client) -> None:
    body = {
        "model": "parrot",
        "input": "Hi",
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert strict_end(http.post("/v1/responses", json=body)).usage is not None


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("GET", "/v1/responses/resp_1/input_items"),
    ],
)
def test_without_a_store_there_is_nothing_to_find(
    http: httpx.Client, method: str, path: str
) -> None:
    answer = http.request(method, path)
    assert answer.status_code == 404
    assert "'resp_1' not found" in read_error(answer)["message"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"stop": "three"}, "one two "),
        ({"stop": ["zzz", "two"], "include_stop_str_in_output": True}, "one two"),
        ({"max_output_tokens": 3}, "one"),
        ({"max_tokens": 3}, "one"),
        ({"max_completion_tokens": 5, "max_tokens": 3}, "one t"),
        ({"max_output_tokens": 7, "max_completion_tokens": 5}, "one two"),
        ({"stop_token_ids": [ord("w")]}, "one t"),
    ],
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_the_fields_of_the_chat_work(
    http: httpx.Client, fields: Json, expected: str, is_stream: bool
) -> None:
    body = {"model": "parrot", "input": "one two three", **fields}
    if not is_stream:
        assert strict_response(http.post("/v1/responses", json=body).text).output_text == expected
        return
    text = http.post("/v1/responses", json=body | {"stream": True}).text
    end = text.split("\n\n")[-3].partition("data: ")[2].removeprefix("")
    assert expected in end and f'"text":"{expected}"' in end


def test_tokens_in_logprobs_may_be_ids(http: httpx.Client) -> None:
    body = {"model": "parrot", "input": "Hi", "logprobs": True, "return_tokens_as_token_ids": True}
    message = http.post("/v1/responses", json=body).json()["output"][0]
    assert [entry["token"] for entry in message["content"][0]["logprobs"]] == [
        "token_id:72",
        "token_id:105",
    ]


@pytest.fixture(scope="module")
def verbose() -> Iterator[RunningServer]:
    """Yields a server whose chat template reads verbosity and reasoning_effort."""
    template = (
        "{{ verbosity }} {{ reasoning_effort }} "
        "{% for message in messages %}<|im_start|>{{ message.role }}\n"
        "{{ message.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    with running_server(chat_template=template) as server:
        yield server


def test_verbosity_and_effort_reach_the_chat_template(verbose: RunningServer) -> None:
    lengths = []
    for fields in ({}, {"text": {"verbosity": "low"}}, {"reasoning": {"effort": "high"}}):
        answer = httpx.post(
            f"{verbose.url}/v1/responses", json={"model": "parrot", "input": "Hi", **fields}
        )
        usage = strict_response(answer.text).usage
        assert usage is not None
        lengths.append(usage.input_tokens)
    assert [length - lengths[0] for length in lengths] == [0, len("low"), len("high")]


def test_two_efforts_that_differ_are_refused(verbose: RunningServer) -> None:
    body = {
        "model": "parrot",
        "input": "Hi",
        "reasoning": {"effort": "high"},
        "reasoning_effort": "low",
    }
    error = read_error(httpx.post(f"{verbose.url}/v1/responses", json=body))
    assert error["param"] == "reasoning_effort"


def test_a_second_form_is_refused(http: httpx.Client) -> None:
    body: Json = {
        "model": "parrot",
        "input": "Hi",
        "text": {"format": {"type": "json_object"}},
        "guided_regex": "a+",
    }
    assert read_error(http.post("/v1/responses", json=body))["param"] == "guided_regex"
