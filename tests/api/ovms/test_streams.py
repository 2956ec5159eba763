"""Streams open each choice with a chunk without text, and end it with its last text."""

import json
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import openai
import pytest

from ouzel.config import ServerConfig
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.requests import Json, chat, read_events
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN

CHAT = "/v3/chat/completions"
COMPLETIONS = "/v3/completions"
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'
TOOLS: Json = {
    "tools": [
        {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    ]
}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    output_format = OutputFormat(calls=HERMES, reasoning=THINKING_ONLY)
    config = ServerConfig(profile="ovms")
    with running_server(config=config, chat_template=QWEN, output_format=output_format) as server:
        yield server


@pytest.fixture(scope="module")
def thinking(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


def post_stream(http: httpx.Client, path: str, body: Json) -> list[dict[str, Any]]:
    """Returns the chunks of a stream; checks that the stream ends with [DONE]."""
    response = http.post(path, json=body | {"stream": True})
    assert response.status_code == 200, response.text
    *events, end = read_events(response)
    assert end == "[DONE]"
    return [json.loads(event) for event in events]


def select_choices(chunks: list[dict[str, Any]], index: int = 0) -> list[dict[str, Any]]:
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    return [choice for choice in choices if choice["index"] == index]


@pytest.mark.parametrize(
    "said", ["Hello", "ä", "<think>\nhm\n</think>\n\nHello", CALL, f"Wait. {CALL}", "Hi\n\n\n"]
)
@pytest.mark.parametrize("n", [1, 3])
def test_each_choice_is_opened_once_and_ended_by_its_last_delta(
    thinking: httpx.Client, said: str, n: int
) -> None:
    chunks = post_stream(thinking, CHAT, chat(said, n=n, **TOOLS))

    reason = "tool_calls" if "tool_call" in said else "stop"
    for index in range(n):
        first, *others = select_choices(chunks, index)
        assert first["delta"] == {"role": "assistant", "content": None}
        assert first["finish_reason"] is None
        assert [choice["finish_reason"] for choice in others] == [None] * (len(others) - 1) + [
            reason
        ]
        assert all(
            len(choice["delta"]) in (1, 2) and "role" not in choice["delta"] for choice in others
        )
        assert all(piece for choice in others for piece in choice["delta"].values())


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_choice_that_its_limit_ends_says_so_with_its_last_text(
    thinking: httpx.Client, limit: int
) -> None:
    first, *others, last = select_choices(
        post_stream(thinking, CHAT, chat("Hello", max_tokens=limit))
    )
    assert first["delta"] == {"role": "assistant", "content": None}
    assert "".join(choice["delta"]["content"] for choice in [*others, last]) == "Hello"[:limit]
    assert (bool(last["delta"]["content"]), last["finish_reason"]) == (True, "length")


def test_a_choice_without_text_has_an_opening_and_an_end(thinking: httpx.Client) -> None:
    first, last = select_choices(post_stream(thinking, CHAT, chat("")))
    assert first["delta"] == {"role": "assistant", "content": None}
    assert (last["delta"], last["finish_reason"]) == ({}, "stop")


def test_half_a_character_opens_the_choice_before_its_text(thinking: httpx.Client) -> None:
    first, last = select_choices(post_stream(thinking, CHAT, chat("ä", max_tokens=2)))
    assert first["delta"] == {"role": "assistant", "content": None}
    assert last["delta"] == {"content": "ä"}


def test_the_end_of_a_stop_string_carries_the_reason(thinking: httpx.Client) -> None:
    choices = select_choices(post_stream(thinking, CHAT, chat("Hello", stop=["lo"])))
    assert "".join(choice["delta"]["content"] for choice in choices[1:]) == "Hello"
    assert (choices[-1]["finish_reason"], choices[-1]["stop_reason"]) == ("stop", "lo")


def test_a_hidden_stop_string_leaves_the_reason_to_the_last_text(thinking: httpx.Client) -> None:
    asked: Json = {"stop": ["lo"], "include_stop_str_in_output": False}
    choices = select_choices(post_stream(thinking, CHAT, chat("Hello", **asked)))
    assert "".join(choice["delta"]["content"] for choice in choices[1:]) == "Hel"
    assert choices[-1]["delta"]["content"]
    assert (choices[-1]["finish_reason"], choices[-1]["stop_reason"]) == ("stop", "lo")


def test_the_usage_of_several_choices_only_grows(thinking: httpx.Client) -> None:
    asked: Json = {
        "n": 3,
        "max_tokens": 3,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    numbers = [
        chunk["usage"]["completion_tokens"]
        for chunk in post_stream(thinking, CHAT, chat("Hello", **asked))
    ]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 9


def test_usage_logprobs_and_token_ids_are_complete(thinking: httpx.Client) -> None:
    asked = chat("Hällo", logprobs=True, return_token_ids=True)
    whole = thinking.post(CHAT, json=asked).json()
    *chunks, last = post_stream(thinking, CHAT, asked | {"stream_options": {"include_usage": True}})

    choices = select_choices(chunks)
    assert [chunk["usage"] for chunk in chunks] == [None] * len(chunks)
    assert (last["choices"], last["usage"]) == ([], whole["usage"])
    assert chunks[0]["prompt_token_ids"] == whole["prompt_token_ids"]
    assert all("prompt_token_ids" not in chunk for chunk in chunks[1:])
    (unary,) = whole["choices"]
    assert [token_id for choice in choices for token_id in choice["token_ids"]] == unary[
        "token_ids"
    ]
    entries = [
        entry for choice in choices if choice["logprobs"] for entry in choice["logprobs"]["content"]
    ]
    assert entries == unary["logprobs"]["content"]


def test_a_completion_opens_and_ends_likewise(thinking: httpx.Client) -> None:
    body: Json = {"model": "parrot", "prompt": ["abc", "xy"], "max_tokens": 4, "n": 2}
    chunks = post_stream(thinking, COMPLETIONS, body)
    for index, text in enumerate(["abca", "abca", "xyxy", "xyxy"]):
        first, *others = select_choices(chunks, index)
        assert (first["text"], first["finish_reason"]) == ("", None)
        assert "".join(choice["text"] for choice in others) == text
        assert all(choice["text"] for choice in others)
        assert [choice["finish_reason"] for choice in others] == [None] * (len(others) - 1) + [
            "length"
        ]


def test_a_completion_shows_as_much_of_prompt_and_tokens_as_a_whole_one(
    thinking: httpx.Client,
) -> None:
    body: Json = {"model": "parrot", "prompt": "abc", "max_tokens": 4, "echo": True, "logprobs": 1}
    body |= {"return_token_ids": True, "prompt_logprobs": 1}
    (whole,) = thinking.post(COMPLETIONS, json=body).json()["choices"]
    first, *others = select_choices(post_stream(thinking, COMPLETIONS, body))

    assert first["text"] == ""
    assert "".join(choice["text"] for choice in others) == whole["text"] == "abcabca"
    assert first["prompt_token_ids"] == whole["prompt_token_ids"]
    assert first["prompt_logprobs"] == whole["prompt_logprobs"]
    assert [token_id for choice in others for token_id in choice["token_ids"]] == whole["token_ids"]
    tokens = [
        token for choice in others for token in (choice["logprobs"] or {"tokens": []})["tokens"]
    ]
    assert tokens == whole["logprobs"]["tokens"]


def test_the_openai_client_reads_both(server: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v3", api_key="none", max_retries=0) as client:
        stream = client.chat.completions.create(
            model="parrot", messages=[{"role": "user", "content": "Hello"}], stream=True
        )
        first, *others = list(stream)
        assert (first.choices[0].delta.role, first.choices[0].delta.content) == ("assistant", None)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in others) == "Hello"
        assert others[-1].choices[0].finish_reason == "stop"
        with client.chat.completions.stream(
            model="parrot", messages=[{"role": "user", "content": "Hello"}]
        ) as helper:
            assert helper.get_final_completion().choices[0].message.content == "Hello"
        pieces = list(
            client.completions.create(model="parrot", prompt="abc", max_tokens=4, stream=True)
        )
        assert "".join(piece.choices[0].text for piece in pieces) == "abca"
        assert pieces[-1].choices[0].finish_reason == "length"
