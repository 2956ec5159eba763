"""Answers of chats keep the requested form.

The requests have reasoning, tools, several choices, log probabilities, stop strings, or too few
tokens for the form.
"""

import asyncio
import itertools
import json
import statistics
import time
from collections.abc import Iterator
from random import Random

import httpx
import jsonschema
import pytest

from tests.serve.answers import Answered, Json, ask_all, read_chunks, substance
from tests.serve.running import RunningServer, serving
from tests.serve.tool_requests import MARKS, PARAMETERS, QUESTIONS, fits
from tests.tries import holds_in_a_try

GRAMMAR_TIMEOUT_S = 1
SCHEMAS = {name: schema for name, schema in PARAMETERS.items() if schema is not None}
COUNT = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["count"],
    "additionalProperties": False,
}
COUNTER = {"type": "function", "function": {"name": "add", "parameters": PARAMETERS["add"]}}
SLOW = {  # seconds of work: every pattern is compared with every other one
    "type": "object",
    "patternProperties": {f"^{place:03}.*z{place}.*$": {"type": "integer"} for place in range(300)},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    exact = (
        "--precision",
        "f32",
        "--kv-cache-dtype",
        "f32",
        "--grammar-timeout-s",
        str(GRAMMAR_TIMEOUT_S),
    )
    with serving(*exact, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=None) as client:
        yield client


def json_schema(schema: object, **more: object) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **more}}


def chat(**fields: object) -> Json:
    messages = [{"role": "user", "content": "Hello!"}]
    return {
        "model": "ouzel-demo",
        "messages": messages,
        "max_tokens": 300,
        "temperature": 0,
        **fields,
    }


def random_chat(random: Random) -> Json:
    """`metadata` names the schema."""
    name = random.choice(sorted(SCHEMAS))
    strict = random.choice(({}, {"strict": True}, {"strict": False}))
    tools = {"tools": [COUNTER], "parallel_tool_calls": False} if random.random() < 0.3 else {}
    return chat(
        response_format=json_schema(SCHEMAS[name], **strict),
        messages=[{"role": "user", "content": random.choice(QUESTIONS)}],
        chat_template_kwargs={"enable_thinking": random.random() < 0.4},
        temperature=random.choice((0, 1)),
        seed=random.randrange(1000),
        metadata={"schema": name},
        **tools,
    )


@pytest.fixture(scope="module")
def streamed(server: RunningServer, before_release: bool) -> list[Answered]:
    random = Random(5)
    num_requests = 150 if before_release else 60
    return ask_all(
        server.url, [random_chat(random) | {"stream": True} for _ in range(num_requests)]
    )


def is_whole(answer: Answered) -> bool:
    return bool(answer.whole["choices"][0]["finish_reason"] != "length")


def test_content_and_calls_are_valid_by_their_schemas(streamed: list[Answered]) -> None:
    num_calls = 0
    whole = [answer for answer in streamed if is_whole(answer)]
    for answer in whole:
        message = answer.whole["choices"][0]["message"]
        calls = [call["function"] for call in message.get("tool_calls", [])]
        num_calls += len(calls)
        assert all(fits(call["name"], call["arguments"]) for call in calls), answer.body
        assert calls or fits(answer.body["metadata"]["schema"], message["content"]), (
            message,
            answer.body,
        )
        assert not calls or "tools" in answer.body
        assert bool(calls) != bool(message.get("content")), answer.body
    assert num_calls > 3
    assert len(whole) > len(streamed) * 0.9


def test_reasoning_comes_first_and_is_no_content(streamed: list[Answered]) -> None:
    thinking = [
        answer for answer in streamed if answer.body["chat_template_kwargs"]["enable_thinking"]
    ]

    with_reasoning = [
        answer for answer in thinking if answer.whole["choices"][0]["message"].get("reasoning")
    ]

    assert len(with_reasoning) > len(streamed) / 5
    for answer in with_reasoning:
        assert not any(mark in answer.whole["choices"][0]["message"]["reasoning"] for mark in MARKS)


def test_a_stream_equals_the_whole_answer(server: RunningServer, streamed: list[Answered]) -> None:
    whole = ask_all(server.url, [answer.body | {"stream": False} for answer in streamed])

    for one, other in zip(streamed, whole, strict=True):
        assert substance(one) == substance(other), one.body


def test_an_answer_that_goes_on_within_its_reasoning_has_the_form_after_it(
    http: httpx.Client,
) -> None:
    messages = [
        {"role": "user", "content": "What is 12 plus 30?"},
        {"role": "assistant", "content": "<think>\n2 + 0 ="},
    ]
    continuing = {"continue_final_message": True, "add_generation_prompt": False}
    body = chat(messages=messages, response_format=json_schema(COUNT), **continuing)

    [choice] = http.post("chat/completions", json=body).json()["choices"]

    assert "2 + 0 =" not in choice["message"]["reasoning"]
    jsonschema.validate(json.loads(choice["message"]["content"]), COUNT)


def test_every_one_of_several_choices_has_the_form(http: httpx.Client) -> None:
    body = chat(response_format=json_schema(COUNT), n=4, temperature=1, seed=3)

    choices = http.post("chat/completions", json=body).json()["choices"]

    contents = [choice["message"]["content"] for choice in choices]
    assert len(set(contents)) > 1
    for content in contents:
        jsonschema.validate(json.loads(content), COUNT)


@pytest.mark.parametrize(
    "fields", [{"num_beams": 4}, {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1}]
)
def test_every_beam_has_the_form(http: httpx.Client, fields: Json) -> None:
    body = chat(response_format=json_schema(COUNT), n=3, **fields)

    choices = http.post("chat/completions", json=body).json()["choices"]

    contents = [choice["message"]["content"] for choice in choices]
    assert len(set(contents)) > 1
    for content in contents:
        jsonschema.validate(json.loads(content), COUNT)


def test_log_probabilities_are_those_of_the_tokens_of_the_form(http: httpx.Client) -> None:
    body = chat(response_format=json_schema(COUNT), logprobs=True, top_logprobs=2)

    [choice] = http.post("chat/completions", json=body).json()["choices"]

    entries = choice["logprobs"]["content"]
    assert "".join(entry["token"] for entry in entries) == choice["message"]["content"]
    assert all(len(entry["top_logprobs"]) == 2 for entry in entries)


@pytest.mark.parametrize("stream", [True, False])
def test_log_probabilities_change_nothing(server: RunningServer, stream: bool) -> None:
    """With log probabilities, the model computes a step even for a token that is forced."""
    body = chat(response_format=json_schema(SCHEMAS["flights"]), stream=stream)

    plain, scored = ask_all(server.url, [body, body | {"logprobs": True}])

    assert plain.whole["choices"][0]["message"] == scored.whole["choices"][0]["message"]


def test_a_stop_string_ends_the_form(http: httpx.Client) -> None:
    body = chat(response_format=json_schema(COUNT), stop="count")

    [choice] = http.post("chat/completions", json=body).json()["choices"]

    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "count")
    assert choice["message"]["content"].strip() == '{"' or choice["message"]["content"].split() == [
        "{",
        '"',
    ]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("max_tokens", [1, 4, 7])
def test_the_beginning_of_a_cut_answer_is_shown(
    server: RunningServer, stream: bool, max_tokens: int
) -> None:
    form = json_schema(SCHEMAS["flights"])
    whole, cut = ask_all(
        server.url,
        [
            chat(response_format=form),
            chat(response_format=form, max_tokens=max_tokens, stream=stream),
        ],
    )

    [choice] = cut.whole["choices"]
    assert choice["finish_reason"] == "length"
    assert cut.whole["usage"]["completion_tokens"] == max_tokens
    assert choice["message"]["content"]
    assert whole.whole["choices"][0]["message"]["content"].startswith(choice["message"]["content"])


@pytest.mark.parametrize("stream", [True, False])
def test_the_beginning_of_a_cut_call_is_shown(server: RunningServer, stream: bool) -> None:
    body = chat(tools=[COUNTER], tool_choice="required", parallel_tool_calls=False)
    whole, cut = ask_all(server.url, [body, body | {"max_tokens": 14, "stream": stream}])

    [choice], [complete] = cut.whole["choices"], whole.whole["choices"][0]["message"]["tool_calls"]
    [call] = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "length"
    assert call["function"]["name"] == "add"
    assert complete["function"]["arguments"].startswith(call["function"]["arguments"])
    assert call["function"]["arguments"] != complete["function"]["arguments"]


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "object", "unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"if": {"type": "string"}, "then": {"minLength": 3}}, "if"),
        ({"type": "string", "format": "postcode"}, "format"),
        ({"type": "string", "pattern": "(?=a)b"}, "pattern"),
        ({"type": "text"}, "type"),
        ({"$ref": "#/$defs/nowhere"}, "$ref"),
        ({"type": "integer", "minimum": 5, "maximum": 1}, "minimum"),
        ({"enum": []}, "enum"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_schema_that_cannot_be_honoured_is_refused_by_name(
    http: httpx.Client, schema: Json, named: str, stream: bool
) -> None:
    param = "response_format.json_schema.schema"
    response = http.post(
        "chat/completions", json=chat(response_format=json_schema(schema), stream=stream)
    )

    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == param
    assert error["message"].startswith(f"{param}: ")
    assert named in error["message"].removeprefix(param)


@pytest.mark.parametrize("stream", [True, False])
def test_a_function_whose_schema_cannot_be_honoured_is_named(
    http: httpx.Client, stream: bool
) -> None:
    faulty = {
        "type": "function",
        "function": {"name": "bad", "parameters": {"not": {"type": "string"}}},
    }
    body = chat(tools=[COUNTER, faulty], tool_choice="required", stream=stream)

    response = http.post("chat/completions", json=body)

    assert response.status_code == 400
    message = response.json()["error"]["message"]
    assert message == "tools: function 'bad': the keyword 'not' at # is not supported"


def test_others_do_not_notice_a_schema_that_takes_too_long(server: RunningServer) -> None:
    """While the server compiles a schema, another stream's tokens come about as fast as before."""

    async def times_of_chunks(http: httpx.AsyncClient) -> list[float]:
        body = chat(
            messages=[{"role": "user", "content": "Count."}],
            ignore_eos=True,
            max_tokens=800,
            stream=True,
        )
        async with http.stream("POST", "chat/completions", json=body) as response:
            return [
                time.perf_counter()
                async for line in response.aiter_lines()
                if line.startswith("data: {")
            ]

    async def refused_at(http: httpx.AsyncClient) -> tuple[float, httpx.Response]:
        for _ in range(10):
            refused = await http.post(
                "chat/completions", json=chat(response_format=json_schema(SLOW))
            )
            if refused.status_code != 429:  # 429: no processor was free; ask again
                break
        return time.perf_counter(), refused

    async def compare() -> tuple[list[float], list[float], tuple[float, httpx.Response]]:
        async with httpx.AsyncClient(base_url=server.url, timeout=None) as http:
            before = await times_of_chunks(http)
            refusal = asyncio.create_task(refused_at(http))
            return before, await times_of_chunks(http), await refusal

    def stream_goes_on() -> bool:
        before, meanwhile, (end, refused) = asyncio.run(compare())
        assert refused.status_code == 400
        assert (
            f"compiling the grammar takes longer than {GRAMMAR_TIMEOUT_S} s"
            in refused.json()["error"]["message"]
        )
        return sum(at < end for at in meanwhile) > 10 and median_gap(meanwhile) < 20 * median_gap(
            before
        )

    assert holds_in_a_try(stream_goes_on)


def median_gap(times: list[float]) -> float:
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(times))


@pytest.mark.release("long streams of calls and formats")
def test_a_stream_of_a_form_comes_in_pieces(http: httpx.Client) -> None:
    """Turns speculation off: with it, several tokens come at once, a number that varies."""
    body = chat(
        response_format=json_schema(SCHEMAS["flights"]), stream=True, num_assistant_tokens=0
    )

    response = http.post("chat/completions", json=body)

    pieces = [chunk["choices"][0]["delta"].get("content") for chunk in read_chunks(response)]

    assert len([piece for piece in pieces if piece]) > 3
