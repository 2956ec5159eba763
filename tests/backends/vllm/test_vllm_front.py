"""Tests the HTTP API with vLLM as the engine. The stand-in runs in the server's process."""

import json
from collections.abc import Iterator

import httpx
import pytest

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat
from tests.api.requests import Json, chat, join_content, read_error, read_events, sum_metric
from tests.api.serving import running_server
from tests.backends.vllm.engines import list_vllm_requests
from tests.prompts.families import QWEN

WHITESPACE = {ord(each): None for each in " \t\n"}
CITY = {
    "type": "object",
    "properties": {"city": {"const": "Oslo"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER: Json = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
CALL = '\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with (
        running_server(
            chat_template=QWEN,
            output_format=OutputFormat(calls=HERMES),
            engine_factory="tests.backends.vllm.engines:create_vllm",
        ) as server,
        server.client() as client,
    ):
        yield client


def test_an_answer_equals_its_stream(http: httpx.Client) -> None:
    whole = http.post("/v1/chat/completions", json=chat("Hello there.")).json()
    events = read_events(http.post("/v1/chat/completions", json=chat("Hello there.", stream=True)))

    assert whole["choices"][0]["message"]["content"] == join_content(events) == "Hello there."
    assert whole["choices"][0]["finish_reason"] == "stop"


def test_a_call_in_the_models_text_is_parsed(http: httpx.Client) -> None:
    completion = http.post("/v1/chat/completions", json=chat(CALL, tools=[WEATHER])).json()
    answer = completion["choices"][0]

    assert answer["finish_reason"] == "tool_calls"
    [call] = answer["message"]["tool_calls"]
    assert call["function"]["name"] == "weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}


def test_a_required_call_has_a_grammar(http: httpx.Client) -> None:
    answer = http.post(
        "/v1/chat/completions", json=chat("abc", tools=[WEATHER], tool_choice="required")
    ).json()

    [call] = answer["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}
    assert "start: " in list_vllm_requests()[-1].params.structured_outputs.grammar


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"regex": "(xyz){2}"}, "xyzxyz"),
        ({"ebnf": 'root ::= digit "-" digit\ndigit ::= [7]'}, "7-7"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": CITY},
                }
            },
            '{"city":"Oslo"}',
        ),
    ],
)
def test_a_form_constrains_the_answer(http: httpx.Client, fields: Json, text: str) -> None:
    answer = http.post("/v1/chat/completions", json=chat("abc", **fields)).json()
    assert answer["choices"][0]["message"]["content"].translate(WHITESPACE) == text


def test_choices_have_logprobs_and_end_at_a_stop_string(http: httpx.Client) -> None:
    body = chat("abcdef", n=2, stop="d", logprobs=True, top_logprobs=2)
    choices = http.post("/v1/chat/completions", json=body).json()["choices"]

    assert [choice["message"]["content"] for choice in choices] == ["abc", "abc"]
    assert [len(entry["top_logprobs"]) for entry in choices[0]["logprobs"]["content"]] == [2, 2, 2]


def test_an_echoed_prompt_has_logprobs(http: httpx.Client) -> None:
    body = {"prompt": "abc", "max_tokens": 0, "echo": True, "logprobs": 1}
    scored = http.post("/v1/completions", json=body).json()["choices"][0]["logprobs"]
    assert scored["token_logprobs"][:2] == [None, -9.0]


def test_prefix_hits_appear_in_usage_and_metrics(http: httpx.Client) -> None:
    text = "The same words, again and again. " * 3
    for _ in range(2):
        usage = http.post("/v1/chat/completions", json=chat(text, max_tokens=1)).json()["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] >= 80
    assert sum_metric(http.get("/metrics").text, "vllm:prefix_cache_hits_total") >= 80


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"use_beam_search": True, "best_of": 2}, "best_of"),
        ({"num_beams": 2}, "num_beams"),
        ({"typical_p": 0.5}, "typical_p"),
        ({"no_repeat_ngram_size": 2}, "no_repeat_ngram_size"),
        ({"num_assistant_tokens": 3}, "num_assistant_tokens"),
        ({"max_ngram_size": 3}, "max_ngram_size"),
        ({"assistant_confidence_threshold": 0.5}, "assistant_confidence_threshold"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_names_a_field_that_vllm_does_not_support(
    http: httpx.Client, fields: Json, param: str, stream: bool
) -> None:
    answer = http.post("/v1/chat/completions", json=chat("abc", stream=stream, **fields))
    assert answer.status_code == 400
    assert read_error(answer)["param"] == param
    assert param in read_error(answer)["message"]


def test_a_grammar_of_a_custom_tool_is_refused(http: httpx.Client) -> None:
    form = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-z]+"}}
    tool = {"type": "custom", "custom": {"name": "patch", "format": form}}
    answer = http.post(
        "/v1/chat/completions", json=chat("abc", tools=[tool], tool_choice="required")
    )
    assert (answer.status_code, read_error(answer)["param"]) == (400, "tools")


def test_an_image_is_refused(http: httpx.Client) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    answer = http.post(
        "/v1/chat/completions", json={"messages": [{"role": "user", "content": [image]}]}
    )
    assert answer.status_code == 400
    assert "messages[0].content[0]" in str(read_error(answer)["param"])


def test_a_prediction_is_ignored(http: httpx.Client) -> None:
    body = chat("abc", prediction={"type": "content", "content": "abc"})
    assert http.post("/v1/chat/completions", json=body).status_code == 200


def test_responses_and_anthropic_messages_have_the_answer(http: httpx.Client) -> None:
    response = http.post("/v1/responses", json={"input": "abc"}).json()
    message = http.post(
        "/v1/messages",
        json={"model": "parrot", "max_tokens": 9, "messages": [{"role": "user", "content": "abc"}]},
    ).json()

    assert response["output"][-1]["content"][0]["text"] == "abc"
    assert message["content"][0]["text"] == "abc"
