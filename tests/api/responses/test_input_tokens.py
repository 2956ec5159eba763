"""The counted tokens of a prompt are equal to the input tokens of its response."""

import asyncio
import json

import httpx
import openai
import pytest

from tests.api.requests import Json, read_error, sum_metric
from tests.api.responses.strict import strict_response
from tests.api.responses.test_conversations import TALK, create_conversation
from tests.api.responses.test_input import message, turns
from tests.api.responses.test_response import LOOK
from tests.api.serving import RunningServer

SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "string"}}}
SHAPES: dict[str, Json] = {
    "a text": {"input": "Hello"},
    "items": {"input": TALK},
    "instructions": {"input": "Hello", "instructions": "Be brief."},
    "tools": {
        "input": "Hello",
        "tools": [LOOK],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
    },
    "no tool": {"input": "Hello", "tools": [LOOK], "tool_choice": "none"},
    "a form": {
        "input": "Hello",
        "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
    },
    "reasoning": {"input": "Hello", "reasoning": {"summary": "auto"}, "enable_thinking": False},
    "truncation": {**turns(100), "truncation": "auto"},
    "the template's own": {
        "input": "Hello",
        "add_generation_prompt": False,
        "add_special_tokens": True,
    },
    "a prompt that is cut": {"input": "Hello", "truncate_prompt_tokens": 7},
}


def count_tokens(http: httpx.Client, **body: object) -> int:
    answer = http.post("/v1/responses/input_tokens", json=body)
    assert answer.json().keys() == {"object", "input_tokens"}
    assert answer.json()["object"] == "response.input_tokens"
    return int(answer.json()["input_tokens"])


def read_used_tokens(http: httpx.Client, **body: object) -> int:
    response = strict_response(http.post("/v1/responses", json={**body, "model": "parrot"}).text)
    assert response.usage is not None
    return response.usage.input_tokens


@pytest.mark.parametrize("shape", SHAPES)
def test_the_count_equals_the_responses_usage(thinker_http: httpx.Client, shape: str) -> None:
    assert count_tokens(thinker_http, **SHAPES[shape]) == read_used_tokens(
        thinker_http, **SHAPES[shape]
    )


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
@pytest.mark.parametrize(
    "given", [{"input": "And?"}, {"input": []}, {}], ids=["with input", "none", "without"]
)
def test_the_continued_response_is_counted_too(
    thinker_http: httpx.Client, field: str, given: Json
) -> None:
    first = strict_response(
        thinker_http.post("/v1/responses", json={"model": "parrot", "input": TALK}).text
    )
    earlier = (
        first.id
        if field == "previous_response_id"
        else create_conversation(thinker_http, items=TALK)
    )
    num_tokens = count_tokens(thinker_http, **given, **{field: earlier})
    # Counting adds nothing to the conversation.
    assert num_tokens == count_tokens(thinker_http, **given, **{field: earlier})
    assert num_tokens == read_used_tokens(thinker_http, **given, **{field: earlier})
    assert num_tokens > count_tokens(thinker_http, input=message("user", "And?")["content"])


def test_nothing_is_generated(thinker_http: httpx.Client) -> None:
    name = "vllm:generation_tokens_total"
    before = sum_metric(thinker_http.get("/metrics").text, name)
    count_tokens(thinker_http, input="Hello", stream=True, background=True)
    assert sum_metric(thinker_http.get("/metrics").text, name) == before


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": ""}, "input"),
        ({"input": "Hi", "model": "another"}, "model"),
        ({"input": "Hi", "personality": "friendly"}, "personality"),
        ({"input": "x" * 5000}, "input"),
        ({"previous_response_id": "resp_9"}, "previous_response_id"),
    ],
)
def test_an_input_that_a_response_would_refuse_is_not_counted(
    thinker_http: httpx.Client, body: Json, param: str
) -> None:
    answer = thinker_http.post("/v1/responses/input_tokens", json=body)
    same = thinker_http.post("/v1/responses", json={"model": "parrot", **body})
    assert (answer.status_code, read_error(answer)) == (same.status_code, read_error(same))
    assert read_error(answer)["param"] == param


def test_the_clients_count(thinker: RunningServer, thinker_client: openai.OpenAI) -> None:
    async def count() -> int:
        async with openai.AsyncOpenAI(
            base_url=f"{thinker.url}/v1", api_key="none", max_retries=0
        ) as client:
            return (await client.responses.input_tokens.count(input="Hello")).input_tokens

    count_tokens = thinker_client.responses.input_tokens.count(model="parrot", input="Hello")
    assert json.loads(count_tokens.to_json()) == {
        "object": "response.input_tokens",
        "input_tokens": asyncio.run(count()),
    }
