"""The old `functions` and `function_call` work with the `openai` client and the demo model."""

import json
from collections.abc import Iterator
from typing import Any  # the client's typed dictionaries

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.serve.running import RunningServer, serving

GET_WEATHER: Any = {
    "name": "get_weather",
    "description": "Get the current weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The city"}},
        "required": ["city"],
    },
}
TODAY: Any = {"name": "today", "description": "Returns the current date"}
QUESTION: Any = {
    "role": "user",
    "content": "Tell me the weather in Paris.",
}  # far from a tie on any CPU


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    with (
        serving(cache_dir=tmp_path_factory.mktemp("cache")) as server,
        openai_client(server) as client,
    ):
        yield client


def openai_client(server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)


def ask(client: openai.OpenAI, *messages: Any, **fields: Any) -> ChatCompletion:
    answer: ChatCompletion = client.chat.completions.create(
        model="ouzel-demo", messages=messages or [QUESTION], temperature=0, max_tokens=200, **fields
    )
    return answer


def stream(client: openai.OpenAI, **fields: Any) -> list[ChatCompletionChunk]:
    return list(
        client.chat.completions.create(
            model="ouzel-demo",
            messages=[QUESTION],
            temperature=0,
            max_tokens=200,
            stream=True,
            **fields,
        )
    )


def test_a_function_is_called_where_the_model_chooses_to(client: openai.OpenAI) -> None:
    [choice] = ask(client, functions=[GET_WEATHER]).choices

    assert choice.finish_reason == "function_call"
    assert choice.message.content is None
    assert choice.message.tool_calls is None
    assert choice.message.function_call is not None
    assert choice.message.function_call.name == "get_weather"
    assert json.loads(choice.message.function_call.arguments) == {"city": "Paris"}


def test_a_named_function_is_called(client: openai.OpenAI) -> None:
    [choice] = ask(client, functions=[GET_WEATHER, TODAY], function_call={"name": "today"}).choices

    assert choice.finish_reason == "function_call"
    assert choice.message.function_call is not None
    assert choice.message.function_call.name == "today"
    assert json.loads(choice.message.function_call.arguments) == {}


def test_no_function_is_called_where_none_may_be(client: openai.OpenAI) -> None:
    [choice] = ask(client, functions=[GET_WEATHER], function_call="none").choices

    assert choice.finish_reason in ("stop", "length")
    assert choice.message.function_call is None
    assert choice.message.content
    assert "<tool_call>" not in choice.message.content


@pytest.mark.parametrize("function_call", ["auto", {"name": "get_weather"}])
def test_a_stream_begins_a_call_with_its_name_and_goes_on_with_pieces(
    client: openai.OpenAI, function_call: Any
) -> None:
    unguessed = {"num_assistant_tokens": 0}  # guessed tokens come several in a chunk
    chunks = stream(
        client, functions=[GET_WEATHER], function_call=function_call, extra_body=unguessed
    )

    calls = [
        call
        for chunk in chunks
        for choice in chunk.choices
        if (call := choice.delta.function_call) is not None
    ]
    assert (calls[0].name, calls[0].arguments) == ("get_weather", "")
    assert len(calls) > 3
    assert all(call.name is None for call in calls[1:])
    assert json.loads("".join(call.arguments or "" for call in calls)) == {"city": "Paris"}
    assert chunks[-1].choices[0].finish_reason == "function_call"
    assert not any(
        choice.delta.tool_calls or choice.delta.content
        for chunk in chunks
        for choice in chunk.choices
    )


def test_the_model_reads_the_result_of_the_function(client: openai.OpenAI) -> None:
    call = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
    answer = ask(
        client,
        QUESTION,
        {"role": "assistant", "content": None, "function_call": call},
        {
            "role": "function",
            "name": "get_weather",
            "content": '{"temperature": 21, "condition": "sunny"}',
        },
        functions=[GET_WEATHER],
    )

    assert answer.choices[0].message.content == "The temperature is 21 and the condition is sunny."


def test_old_and_new_names_do_not_go_together(client: openai.OpenAI) -> None:
    tool = {"type": "function", "function": TODAY}

    with pytest.raises(openai.BadRequestError, match="functions must not be given beside tools"):
        ask(client, functions=[TODAY], tools=[tool])
