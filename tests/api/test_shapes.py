"""Answers, chunks and errors fit the types of the `openai` client.

They have all required keys and no value of another type. Further keys are keys of other servers.
"""

import json
from collections.abc import Iterator
from typing import Any  # keys that the client's types do not have

import httpx
import openai
import pytest
from openai.types import Completion, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.shared.error_object import ErrorObject
from pydantic import BaseModel

from tests.api.requests import Json, chat, read_events

OF_OTHER_SERVERS = {
    "architecture",
    "capabilities",
    "context_length",
    "max_model_len",
    "parent",
    "prompt_logprobs",
    "prompt_token_ids",
    "reasoning",
    "reasoning_content",
    "root",
    "stop_reason",
    "token_ids",
}
CHATS: list[Json] = [
    {},
    {"n": 2},
    {"logprobs": True, "top_logprobs": 2},
    {"stop": "l"},
    {"max_tokens": 1},
    {"prompt_logprobs": 1, "max_tokens": 0},
    {"return_token_ids": True},
    {"best_of": 3, "n": 2},
]
COMPLETIONS: list[Json] = [
    {},
    {"n": 2},
    {"logprobs": 2},
    {"stop": "c"},
    {"prompt": ["ab", "cd"]},
    {"prompt": [97, 98]},
    {"prompt_logprobs": 1},
    {"echo": True},
    {"return_token_ids": True},
]


@pytest.mark.parametrize("fields", CHATS)
def test_a_chat_completion_has_the_clients_shape(http: httpx.Client, fields: Json) -> None:
    answer = http.post("/v1/chat/completions", json=chat("Hello", **fields)).json()
    assert unknown_keys(ChatCompletion.model_validate(answer, strict=True)) <= OF_OTHER_SERVERS


@pytest.mark.parametrize("fields", CHATS)
def test_chunks_of_a_chat_have_the_clients_shape(http: httpx.Client, fields: Json) -> None:
    options = {"include_usage": True}
    response = http.post(
        "/v1/chat/completions", json=chat("Hello", stream=True, stream_options=options, **fields)
    )
    *events, end = read_events(response)
    assert end == "[DONE]"
    chunks = [
        ChatCompletionChunk.model_validate(json.loads(event), strict=True) for event in events
    ]
    assert {key for chunk in chunks for key in unknown_keys(chunk)} <= OF_OTHER_SERVERS
    assert (
        len({(chunk.id, chunk.created, chunk.model, chunk.system_fingerprint) for chunk in chunks})
        == 1
    )
    indexes = {choice.index for chunk in chunks for choice in chunk.choices}
    assert len(indexes) == fields.get("n", 1)
    for index in indexes:
        choices = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
        assert [choice.delta.role for choice in choices] == ["assistant"] + [None] * (
            len(choices) - 1
        )
        assert [choice.finish_reason is None for choice in choices] == [True] * (
            len(choices) - 1
        ) + [False]
    assert [chunk.usage is None for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    assert chunks[-1].choices == []


@pytest.mark.parametrize("fields", COMPLETIONS)
def test_a_completion_has_the_clients_shape(http: httpx.Client, fields: Json) -> None:
    answer = http.post(
        "/v1/completions", json={"model": "parrot", "prompt": "abc", "max_tokens": 5, **fields}
    ).json()
    assert unknown_keys(Completion.model_validate(answer, strict=True)) <= OF_OTHER_SERVERS


@pytest.mark.parametrize("fields", COMPLETIONS)
def test_chunks_of_a_completion_have_the_clients_shape(http: httpx.Client, fields: Json) -> None:
    body = {"model": "parrot", "prompt": "abc", "max_tokens": 5, "stream": True, **fields}
    *events, end = read_events(http.post("/v1/completions", json=body))
    assert end == "[DONE]"
    for event in events:
        chunk = json.loads(event)
        for choice in chunk["choices"]:
            # the check uses the type of whole answers, whose finish_reason is never null
            choice["finish_reason"] = choice["finish_reason"] or "stop"
        assert unknown_keys(Completion.model_validate(chunk, strict=True)) <= OF_OTHER_SERVERS


def test_fields_unknown_to_the_clients_types_are_null_rather_than_absent(
    client: openai.OpenAI,
) -> None:
    """The client raises AttributeError when a key outside its types is absent."""
    answer = client.chat.completions.create(
        model="parrot", messages=[{"role": "user", "content": "Hi"}]
    )
    message: Any = answer.choices[0].message
    assert (message.reasoning_content, message.reasoning, message.tool_calls, message.audio) == (
        None,
    ) * 4
    more: Any = answer
    assert (more.prompt_logprobs, more.choices[0].stop_reason) == (None, None)
    completion: Any = client.completions.create(model="parrot", prompt="Hi", max_tokens=1)
    assert (completion.choices[0].prompt_logprobs, completion.choices[0].stop_reason) == (
        None,
        None,
    )
    model: Any = client.models.list().data[0]
    assert (model.root, model.parent) == (None, None)


def test_models_have_the_clients_shape(http: httpx.Client) -> None:
    for model in http.get("/v1/models").json()["data"]:
        assert unknown_keys(Model.model_validate(model, strict=True)) <= OF_OTHER_SERVERS


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/chat/completions", "{"),
        ("POST", "/v1/chat/completions", '{"model": "nobody", "messages": []}'),
        ("POST", "/v1/completions", '{"model": "parrot", "prompt": "a", "temperature": 3}'),
        ("POST", "/v1/tokenize", "{}"),
        ("GET", "/v1/models/nobody", ""),
        ("GET", "/nowhere", ""),
        ("DELETE", "/v1/models", ""),
    ],
)
def test_an_error_has_the_clients_shape(
    http: httpx.Client, method: str, path: str, body: str
) -> None:
    answer = http.request(method, path, content=body).json()
    assert answer.keys() == {"error"}
    assert unknown_keys(ErrorObject.model_validate(answer["error"], strict=True)) == set()


def unknown_keys(value: object) -> set[str]:
    return set(_unknown_keys(value))


def _unknown_keys(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for entry in value:
            yield from _unknown_keys(entry)
    if isinstance(value, BaseModel):
        yield from value.model_extra or {}
        for name in type(value).model_fields:
            yield from _unknown_keys(getattr(value, name))
