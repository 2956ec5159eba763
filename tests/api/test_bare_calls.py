"""Every API reads a call in JSON without the model's marks, whole and streamed."""

import json
from collections.abc import Iterator

import httpx
import pytest

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.anthropic import exchanges
from tests.api.ollama import lines
from tests.api.requests import Json, chat, join_content, read_events
from tests.api.responses.strict import strict_end, strict_events, strict_response
from tests.api.serving import running_server
from tests.prompts.families import QWEN

SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION: Json = {"name": "get_weather", "parameters": SCHEMA}
TOOL: Json = {"type": "function", "function": FUNCTION}
FLAT_TOOL: Json = {"type": "function", "strict": False, **FUNCTION}
ARGUMENTS = '{"city": "Paris"}'
CALL = f'{{"name": "get_weather", "arguments": {ARGUMENTS}}}'
FENCED = f"```json\n{CALL}\n```"
FORM: Json = {"type": "json_schema", "json_schema": {"name": "any", "schema": {"type": "object"}}}
PATH = "/v1/chat/completions"


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    output_format = OutputFormat(calls=HERMES, reasoning=THINKING_ONLY)
    with (
        running_server(chat_template=QWEN, output_format=output_format) as server,
        server.client() as client,
    ):
        yield client


def whole_choice(http: httpx.Client, said: str, **fields: object) -> Json:
    response = http.post(PATH, json=chat(said, **{"tools": [TOOL], **fields}))
    assert response.status_code == 200, response.text
    choice: Json = response.json()["choices"][0]
    return choice


def streamed_choices(http: httpx.Client, said: str, **fields: object) -> list[Json]:
    events = read_events(
        http.post(PATH, json=chat(said, **{"tools": [TOOL], "stream": True, **fields}))
    )
    return [json.loads(event)["choices"][0] for event in events if event != "[DONE]"]


@pytest.mark.parametrize("said", [CALL, FENCED, f"\n{CALL}\n", f"<think>\nhm\n</think>\n\n{CALL}"])
def test_a_chat_has_the_call_and_no_content(http: httpx.Client, said: str) -> None:
    choice = whole_choice(http, said)
    choices = streamed_choices(http, said)

    assert choice["finish_reason"] == choices[-1]["finish_reason"] == "tool_calls"
    message = choice["message"]
    assert isinstance(message, dict)
    assert message["content"] is None
    [call] = message["tool_calls"]
    assert call["function"] == {"name": "get_weather", "arguments": ARGUMENTS}
    deltas = [each["delta"] for each in choices]
    assert "".join(delta.get("content", "") for delta in deltas if isinstance(delta, dict)) == ""
    pieces = [
        piece
        for delta in deltas
        if isinstance(delta, dict)
        for piece in delta.get("tool_calls", [])
    ]
    assert (pieces[0]["type"], pieces[0]["function"]["name"]) == ("function", "get_weather")
    assert "".join(piece["function"]["arguments"] for piece in pieces) == ARGUMENTS


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("It is sunny.", {}),
        (f"I call it: {CALL}", {}),
        ('{"city": "Paris"}', {}),
        ('{"name": "get_weather", "arguments": {}}', {}),
        (CALL, {"tools": None}),
        (CALL, {"tool_choice": "none"}),
        (CALL, {"response_format": FORM}),
        (CALL, {"tools": [{"type": "function", "function": {"name": "other"}}]}),
        (f"[{CALL}, {CALL}]", {"parallel_tool_calls": False}),
    ],
)
def test_another_answer_is_content_as_the_model_wrote_it(
    http: httpx.Client, said: str, fields: Json
) -> None:
    choice = whole_choice(http, said, **fields)
    choices = streamed_choices(http, said, **fields)

    assert choice["finish_reason"] == choices[-1]["finish_reason"] == "stop"
    message = choice["message"]
    assert isinstance(message, dict)
    assert message["content"] == said
    assert "tool_calls" not in message
    deltas = [each["delta"] for each in choices]
    assert "".join(delta.get("content", "") for delta in deltas if isinstance(delta, dict)) == said


def test_an_array_is_several_calls(http: httpx.Client) -> None:
    message = whole_choice(http, f"[{CALL}, {CALL}]")["message"]

    assert isinstance(message, dict)
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == [ARGUMENTS] * 2


def test_an_answer_that_the_assistant_has_begun_is_not_whole(http: httpx.Client) -> None:
    messages = [{"role": "user", "content": CALL}, {"role": "assistant", "content": "So: "}]
    fields = {"continue_final_message": True, "add_generation_prompt": False}

    message = whole_choice(http, CALL, messages=messages, **fields)["message"]

    assert isinstance(message, dict)
    assert message["content"] == CALL


@pytest.mark.parametrize("said", [CALL, '{"answer": "Paris"}', "Paris.", f"{CALL}, then"])
def test_each_token_has_its_logprob_once(http: httpx.Client, said: str) -> None:
    whole = whole_choice(http, said, logprobs=True)["logprobs"]
    streamed = [each["logprobs"] for each in streamed_choices(http, said, logprobs=True)]

    assert isinstance(whole, dict)
    pieces = [
        piece
        for logprobs in streamed
        if isinstance(logprobs, dict)
        for piece in logprobs["content"]
    ]
    assert "".join(piece["token"] for piece in whole["content"]) == said
    assert [piece["token"] for piece in pieces] == [piece["token"] for piece in whole["content"]]


def test_a_response_has_the_call_as_an_item(http: httpx.Client) -> None:
    fields = {"model": "parrot", "input": FENCED, "tools": [FLAT_TOOL]}
    whole = strict_response(http.post("/v1/responses", json=fields).text)
    streamed = http.post("/v1/responses", json=fields | {"stream": True})

    for response in (whole, strict_end(streamed)):
        [item] = response.output
        assert item.type == "function_call"
        assert (item.name, item.arguments) == ("get_weather", ARGUMENTS)
    assert not [
        event for event in strict_events(streamed) if event.type.startswith("response.output_text")
    ]


def test_the_text_of_a_response_has_the_logprobs_of_held_back_tokens(http: httpx.Client) -> None:
    said = '{"name": "Ann"}'
    fields = {"include": ["message.output_text.logprobs"], "tools": [FLAT_TOOL]}
    answer = http.post("/v1/responses", json={"model": "parrot", "input": said, **fields}).json()

    [item] = answer["output"]
    [part] = item["content"]
    assert part["text"] == "".join(each["token"] for each in part["logprobs"]) == said


def test_a_message_has_the_call_as_a_block(http: httpx.Client) -> None:
    tool = {"name": "get_weather", "input_schema": SCHEMA}
    fields = exchanges.build_request(CALL, tools=[tool])
    whole = http.post(exchanges.PATH, json=fields).json()
    streamed = exchanges.fold_events(
        exchanges.read_events(http.post(exchanges.PATH, json=fields | {"stream": True}))
    )

    for message in (whole, streamed):
        [block] = message["content"]
        assert (block["type"], block["name"], block["input"]) == (
            "tool_use",
            "get_weather",
            {"city": "Paris"},
        )
        assert message["stop_reason"] == "tool_use"


def test_ollamas_chat_has_the_call(http: httpx.Client) -> None:
    fields = lines.chat(CALL, tools=[TOOL])
    whole = lines.read_answer(http.post("/api/chat", json=fields | {"stream": False}))
    streamed = lines.fold_lines(lines.read_lines(http.post("/api/chat", json=fields)))

    for answer in (whole, streamed):
        [call] = answer["message"]["tool_calls"]
        assert (call["function"]["name"], call["function"]["arguments"]) == (
            "get_weather",
            {"city": "Paris"},
        )
        assert answer["message"]["content"] == ""


def test_the_option_leaves_it_as_content() -> None:
    server = running_server(
        chat_template=QWEN, output_format=OutputFormat(calls=HERMES), reads_bare_calls=False
    )
    with server as running, running.client() as http:
        message = whole_choice(http, CALL)["message"]
        events = read_events(http.post(PATH, json=chat(CALL, tools=[TOOL], stream=True)))

    assert isinstance(message, dict)
    assert message["content"] == join_content(events) == CALL
