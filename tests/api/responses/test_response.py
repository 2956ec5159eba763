"""Whole and streamed responses fit the official client's types."""

import asyncio
import json
import re

import httpx
import openai
import pytest

from ouzel.config import ServerConfig
from tests.api.byte_tokens import END, START
from tests.api.requests import Json, read_error
from tests.api.responses.strict import (
    named_events,
    remove_ids,
    strict_end,
    strict_events,
    strict_response,
)
from tests.api.server_setup import MODEL
from tests.api.serving import RunningServer, running_server

CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "the owl"}}\n</tool_call>'
OTHER_CALL = '<tool_call>\n{"name": "rest", "arguments": {}}\n</tool_call>'
LOOK = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}
REST = {"type": "function", "function": {"name": "rest", "description": "Sit down."}}
SAYINGS = {
    "text": "Hello, wörld 🦉",
    "reasoning": "<think>let me see</think>It is an owl.",
    "call": CALL,
    "calls": f"{CALL}\n{OTHER_CALL}",
    "reasoning, text and calls": f"<think>let me see</think>I look.\n{CALL}\n{OTHER_CALL}",
    "nothing": "",
}


def build_request(what: str, **fields: object) -> Json:
    return {
        "model": "parrot",
        "input": [{"role": "user", "content": what}],
        "tools": [LOOK, REST],
        **fields,
    }


@pytest.mark.parametrize("saying", SAYINGS)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"max_output_tokens": 40},
        {"reasoning": {"summary": "auto"}},
        {
            "include": ["message.output_text.logprobs", "reasoning.encrypted_content"],
            "top_logprobs": 2,
        },
        {"stream_options": {"include_obfuscation": True}},
    ],
)
def test_a_stream_ends_with_the_whole_response(
    thinker_http: httpx.Client, saying: str, fields: Json
) -> None:
    body = build_request(SAYINGS[saying], **fields)
    unary = strict_response(
        thinker_http.post("/v1/responses", json=body | {"stream_options": None}).text
    )

    events = strict_events(thinker_http.post("/v1/responses", json=body | {"stream": True}))

    end = events[-1]
    assert end.type in ("response.completed", "response.incomplete")
    usage = unary.usage
    assert usage is not None and end.response.usage is not None
    # the second request finds the prompt in the cache
    usage.input_tokens_details = end.response.usage.input_tokens_details
    assert remove_ids(end.response) == remove_ids(unary)


@pytest.mark.parametrize("saying", SAYINGS)
def test_deltas_add_up_to_the_done_events(thinker_http: httpx.Client, saying: str) -> None:
    body = build_request(SAYINGS[saying], stream=True, reasoning={"summary": "detailed"})
    sums: dict[tuple[str, str], str] = {}
    for name, data in named_events(thinker_http.post("/v1/responses", json=body)):
        event = json.loads(data)
        subject, _, stage = name.rpartition(".")
        if stage == "delta":
            key = (subject, event["item_id"])
            sums[key] = sums.get(key, "") + event["delta"]
        elif stage == "done" and ("text" in event or "arguments" in event):
            assert event.get("text", event.get("arguments")) == sums.get(
                (subject, event["item_id"]), ""
            )


def test_events_of_a_calls_arguments_name_the_call(thinker_http: httpx.Client) -> None:
    answer = thinker_http.post("/v1/responses", json=build_request(SAYINGS["calls"], stream=True))
    events = [json.loads(data) for _, data in named_events(answer)]
    call_ids = {
        event["item"]["id"]: event["item"]["call_id"]
        for event in events
        if "output_item.added" in event["type"]
    }
    of_arguments = [event for event in events if "function_call_arguments" in event["type"]]
    assert {event["item_id"]: event["call_id"] for event in of_arguments} == call_ids
    assert all("call_id" in event for event in of_arguments) and len(call_ids) == 2


def test_several_choices_come_one_after_the_other(thinker_http: httpx.Client) -> None:
    body = build_request(SAYINGS["reasoning"], n=3)
    response = strict_response(thinker_http.post("/v1/responses", json=body).text)
    assert [item.type for item in response.output] == ["reasoning", "message"] * 3


def test_a_response_has_the_fields_that_clients_read(client: openai.OpenAI) -> None:
    response = client.responses.create(model="parrot", input="Hello")
    assert re.fullmatch(r"resp_[0-9a-f]{48}", response.id)
    assert (response.object, response.status, response.model) == ("response", "completed", MODEL)
    assert response.created_at > 1_700_000_000
    assert response.completed_at is not None and response.completed_at >= response.created_at
    assert response.output_text == "Hello"
    [message] = response.output
    assert message.type == "message" and message.id.startswith("msg_")
    assert response.error is None and response.incomplete_details is None
    assert response.usage is not None
    assert response.usage.output_tokens == len("Hello") + 1
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


def test_ids_are_never_the_same(client: openai.OpenAI) -> None:
    responses = [client.responses.create(model="parrot", input="Hello") for _ in range(3)]
    assert len({response.id for response in responses}) == 3
    assert len({response.output[0].id for response in responses}) == 3


def test_items_come_in_the_order_in_which_they_are_made(thinker_http: httpx.Client) -> None:
    response = strict_response(
        thinker_http.post(
            "/v1/responses", json=build_request(SAYINGS["reasoning, text and calls"])
        ).text
    )
    assert [item.type for item in response.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    reasoning, message, look, rest = response.output
    assert reasoning.type == "reasoning" and message.type == "message"
    assert look.type == "function_call" and rest.type == "function_call"
    assert reasoning.content is not None and reasoning.content[0].text == "let me see"
    assert reasoning.summary == []
    assert response.output_text.strip() == "I look."
    assert (look.name, json.loads(look.arguments)) == ("look", {"at": "the owl"})
    assert (rest.name, json.loads(rest.arguments)) == ("rest", {})
    assert (
        look.call_id.startswith("call_")
        and str(look.id).startswith("fc_")
        and look.call_id != rest.call_id
    )
    assert response.usage is not None and response.usage.output_tokens_details.reasoning_tokens > 0


def test_a_summary_that_is_asked_for_is_the_reasoning_itself(thinker_http: httpx.Client) -> None:
    body = build_request(SAYINGS["reasoning"], reasoning={"summary": "auto"})
    [reasoning, _] = strict_response(thinker_http.post("/v1/responses", json=body).text).output
    assert reasoning.type == "reasoning"
    assert [part.text for part in reasoning.summary] == ["let me see"]


@pytest.mark.parametrize(
    ("saying", "limit", "kept"),
    [
        ("Hello", 3, "message"),
        ("<think>let me see</think>An owl.", 12, "reasoning"),
        (CALL, 45, "function_call"),
    ],
)
def test_the_limit_of_tokens_makes_it_incomplete(
    thinker_http: httpx.Client, saying: str, limit: int, kept: str
) -> None:
    body = build_request(saying, max_output_tokens=limit)
    response = strict_response(thinker_http.post("/v1/responses", json=body).text)
    assert response.status == "incomplete"
    assert (
        response.incomplete_details is not None
        and response.incomplete_details.reason == "max_output_tokens"
    )
    assert response.completed_at is None
    assert response.max_output_tokens == limit
    last = response.output[-1].to_dict()
    assert (last["type"], last["status"]) == (kept, "incomplete")


def test_logprobs_cover_the_text_only(thinker_http: httpx.Client) -> None:
    body = build_request(
        SAYINGS["reasoning"], include=["message.output_text.logprobs"], top_logprobs=2
    )
    response = strict_response(thinker_http.post("/v1/responses", json=body).text)
    message = response.output[-1]
    assert message.type == "message" and message.content[0].type == "output_text"
    logprobs = message.content[0].logprobs
    assert logprobs is not None
    assert len(logprobs[-1].top_logprobs) >= 1
    assert "".join(entry.token for entry in logprobs).endswith("It is an owl.")


def test_without_being_asked_for_there_are_no_logprobs(http: httpx.Client) -> None:
    response = strict_response(
        http.post("/v1/responses", json={"model": "parrot", "input": "Hi"}).text
    )
    message = response.output[0]
    assert message.type == "message" and message.content[0].type == "output_text"
    assert message.content[0].logprobs == []


def test_the_fields_of_the_request_are_repeated(thinker_http: httpx.Client) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    asked: Json = {
        "instructions": "Be brief.",
        "max_output_tokens": 30,
        "max_tool_calls": 3,
        "metadata": {"ticket": "7"},
        "parallel_tool_calls": False,
        "prompt_cache_key": "key",
        "safety_identifier": "someone",
        "temperature": 0.5,
        "top_p": 0.75,
        "tool_choice": {"type": "function", "name": "look"},
        "text": {"format": {"type": "json_schema", "name": "a", "schema": schema, "strict": True}},
        "truncation": "auto",
        "user": "someone else",
    }
    response = strict_response(
        thinker_http.post("/v1/responses", json=build_request("Hi", **asked)).text
    )
    shown = json.loads(response.to_json())
    text_format = {**asked["text"]["format"], "description": None}  # type: ignore[index]
    asked["text"] = {"format": text_format, "verbosity": "medium"}
    assert {name: shown[name] for name in asked} == asked
    assert [tool["name"] for tool in shown["tools"]] == ["look", "rest"]
    assert all(tool["type"] == "function" and tool["strict"] is False for tool in shown["tools"])


def test_defaults_are_shown_as_they_count(http: httpx.Client) -> None:
    shown = http.post("/v1/responses", json={"model": "parrot", "input": "Hi"}).json()
    assert (shown["temperature"], shown["top_p"], shown["tool_choice"], shown["truncation"]) == (
        1,
        1,
        "auto",
        "disabled",
    )
    assert (shown["store"], shown["background"], shown["parallel_tool_calls"]) == (
        False,
        False,
        True,
    )
    assert (shown["metadata"], shown["tools"], shown["max_output_tokens"]) == ({}, [], None)


@pytest.mark.parametrize("store", [False, True])
def test_token_ids_are_shown_when_asked_for(thinker_http: httpx.Client, store: bool) -> None:
    body = build_request("ab", return_token_ids=True, store=store, tools=[])
    response = strict_response(thinker_http.post("/v1/responses", json=body).text).to_dict()
    end = strict_end(thinker_http.post("/v1/responses", json=body | {"stream": True})).to_dict()

    prompt_token_ids = [START, *b"user\nab", END, *b"\n", START, *b"assistant\n"]
    assert response["prompt_token_ids"] == end["prompt_token_ids"] == prompt_token_ids
    assert response["token_ids"] == end["token_ids"] == [*b"ab", END]


def test_a_failed_response_has_the_token_ids_made_before(thinker_http: httpx.Client) -> None:
    body = build_request("ab|fail|", return_token_ids=True, stream=True, tools=[])
    failed = strict_end(thinker_http.post("/v1/responses", json=body)).to_dict()
    assert (
        failed["status"] == "failed" and "prompt_token_ids" in failed and "token_ids" not in failed
    )


@pytest.mark.parametrize(
    "choice", [{"mode": "auto", "tools": [{"type": "function", "name": "look"}]}]
)
def test_allowed_tools_are_read_flat_and_nested(thinker_http: httpx.Client, choice: Json) -> None:
    flat = {"type": "allowed_tools", **choice}
    for tool_choice in (flat, {"type": "allowed_tools", "allowed_tools": choice}):
        body = build_request("Hi", tool_choice=tool_choice)
        assert json.loads(thinker_http.post("/v1/responses", json=body).text)["tool_choice"] == flat


@pytest.mark.parametrize("path", ["/v1/responses", "/v3/responses", "/v3/v1/responses"])
def test_all_prefixes_answer(http: httpx.Client, path: str) -> None:
    assert (
        strict_response(http.post(path, json={"model": "parrot", "input": "Hi"}).text).output_text
        == "Hi"
    )


def test_the_mark_at_the_end_can_be_left_out() -> None:
    with running_server(config=ServerConfig(responses_done=False)) as server:
        answer = httpx.post(
            f"{server.url}/v1/responses", json={"model": "parrot", "input": "Hi", "stream": True}
        )
    assert answer.text.rsplit("\n\n", 2)[1].startswith("event: response.completed\n")


def test_obfuscated_deltas_are_alike_in_length(http: httpx.Client) -> None:
    body = {
        "model": "parrot",
        "input": "Hello",
        "stream": True,
        "stream_options": {"include_obfuscation": True},
    }
    deltas = [
        json.loads(data)
        for name, data in named_events(http.post("/v1/responses", json=body))
        if "delta" in name
    ]
    assert {len(event["delta"] + event["obfuscation"]) for event in deltas} == {16}


@pytest.mark.parametrize("before", ["", "<think>hm", "text", CALL])
def test_a_fault_in_the_midst_closes_the_items_and_fails_the_response(
    thinker_http: httpx.Client, before: str
) -> None:
    answer = thinker_http.post(
        "/v1/responses", json=build_request(f"-{before}<|fail|>", stream=True)
    )
    assert answer.status_code == 200
    end = strict_events(answer)[-1]
    assert end.type == "response.failed"
    assert (end.response.status, end.response.completed_at, end.response.usage) == (
        "failed",
        None,
        None,
    )
    assert end.response.error is not None
    assert (end.response.error.code, end.response.error.message) == (
        "server_error",
        "scripted failure",
    )
    assert end.response.output[-1].to_dict()["status"] == "incomplete"


@pytest.mark.parametrize("bug", ["#", "\a"])
def test_a_bug_of_ours_fails_the_stream_and_tells_only_the_log(
    http: httpx.Client, bug: str
) -> None:
    begins_before_it_fails = {"model": "parrot", "input": "a" * 2000 + bug, "stream": True}
    end = strict_events(http.post("/v1/responses", json=begins_before_it_fails))[-1]
    assert end.type == "response.failed" and end.response.error is not None
    assert "detail" not in end.response.error.message


def test_a_whole_response_that_fails_is_an_error(http: httpx.Client) -> None:
    answer = http.post("/v1/responses", json={"model": "parrot", "input": "a<|fail|>"})
    assert (answer.status_code, read_error(answer)["message"]) == (500, "scripted failure")


@pytest.mark.parametrize("saying", ["text", "reasoning", "calls"])
def test_the_clients_accumulator_gives_the_whole_response(
    thinker_client: openai.OpenAI, saying: str
) -> None:
    tools = [{**LOOK, "strict": False}]
    unary = thinker_client.responses.create(
        model="parrot",
        input=SAYINGS[saying],
        tools=tools,  # type: ignore[arg-type]
    )
    with thinker_client.responses.stream(
        model="parrot",
        input=SAYINGS[saying],
        tools=tools,  # type: ignore[arg-type]
    ) as stream:
        final = stream.get_final_response()
    assert final.output_text == unary.output_text
    assert [item.type for item in final.output] == [item.type for item in unary.output]
    assert final.usage is not None and unary.usage is not None
    assert final.usage.total_tokens == unary.usage.total_tokens


def test_the_asynchronous_client_reads_both(server: RunningServer) -> None:
    async def ask() -> tuple[str, str]:
        async with openai.AsyncOpenAI(
            base_url=f"{server.url}/v1", api_key="none", max_retries=0
        ) as client:
            unary = await client.responses.create(model="parrot", input="Hello")
            async with client.responses.stream(model="parrot", input="Hello") as stream:
                final = await stream.get_final_response()
        return unary.output_text, final.output_text

    assert asyncio.run(ask()) == ("Hello", "Hello")
