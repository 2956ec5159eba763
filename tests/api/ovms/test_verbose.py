"""`--verbose-response` adds `__verbose` to answers."""

import json
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.requests import chat, read_events
from tests.api.serving import running_server

CHAT, COMPLETION = "/v3/chat/completions", "/v3/completions"
PROMPT = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def verbose() -> Iterator[httpx.Client]:
    config = ServerConfig(profile="ovms", verbose_response=True)
    with running_server(config=config) as server, server.client() as http:
        yield http


def test_a_chat_tells_its_prompt_and_its_output_with_special_tokens(verbose: httpx.Client) -> None:
    answer = verbose.post(CHAT, json=chat("Hello")).json()
    assert answer["__verbose"] == {"prompt": PROMPT, "content": "Hello<|im_end|>"}
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"]["content"] == "Hello"


def test_a_completion_does_too(verbose: httpx.Client) -> None:
    body = {"model": "parrot", "prompt": "abc", "max_tokens": 2}
    answer = verbose.post(COMPLETION, json=body).json()
    assert answer["__verbose"] == {"prompt": "abc", "content": "ab"}


@pytest.mark.parametrize("more", [{}, {"stream_options": {"include_usage": True}}])
def test_only_the_last_chunk_of_a_choice_has_the_verbose_part(
    verbose: httpx.Client, more: dict[str, Any]
) -> None:
    events = read_events(verbose.post(CHAT, json=chat("Hello", stream=True, **more)))
    [told] = [json.loads(event) for event in events if "__verbose" in event]
    assert told["__verbose"] == {"prompt": PROMPT, "content": "Hello<|im_end|>"}
    assert told["choices"][0]["finish_reason"] == "stop"


def test_of_several_choices_the_first_is_reported(verbose: httpx.Client) -> None:
    answer = verbose.post(CHAT, json=chat("Hello", n=2, best_of=2, temperature=1)).json()
    assert len(answer["choices"]) == 2
    assert answer["__verbose"]["content"] == "Hello<|im_end|>"


def test_without_the_option_nothing_is_reported(ovms: httpx.Client) -> None:
    assert "__verbose" not in ovms.post(CHAT, json=chat("Hello")).json()
