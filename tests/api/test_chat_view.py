"""A chat's request says where its reasoning is shown, and whether the last message is echoed."""

import json
from collections.abc import Iterator

import httpx
import pytest

from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.requests import Json, chat, read_error, read_events
from tests.api.serving import running_server

SAID = "<think>\nHm.\n</think>\n\nYes."


@pytest.fixture(scope="module")
def thinker() -> Iterator[httpx.Client]:
    with (
        running_server(output_format=OutputFormat(reasoning=THINKING_ONLY)) as server,
        server.client() as http,
    ):
        yield http


def shown(http: httpx.Client, body: Json, *, stream: bool) -> tuple[str, str]:
    """Returns the reasoning and the content of the answer."""
    response = http.post("/v1/chat/completions", json=body | {"stream": stream})
    assert response.status_code == 200, response.text
    messages: list[Json] = (
        [json.loads(event)["choices"][0]["delta"] for event in _data(response)] if stream else []
    )
    messages = messages or [response.json()["choices"][0]["message"]]
    assert messages[0]["role"] == "assistant"
    reasoning, content = (
        "".join(str(message.get(name) or "") for message in messages)
        for name in ("reasoning_content", "content")
    )
    return reasoning, content


def _data(response: httpx.Response) -> list[str]:
    return [event for event in read_events(response) if event != "[DONE]"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "reasoning", "content"),
    [
        ({}, "Hm.", "Yes."),
        (
            {"include_reasoning": True, "separate_reasoning": True, "reasoning_format": "auto"},
            "Hm.",
            "Yes.",
        ),
        ({"reasoning_format": "deepseek"}, "Hm.", "Yes."),
        ({"include_reasoning": False}, "", "Yes."),
        ({"reasoning_format": "hidden"}, "", "Yes."),
        ({"separate_reasoning": False}, "", SAID),
        ({"reasoning_format": "none"}, "", SAID),
        ({"separate_reasoning": False, "reasoning_format": "raw"}, "", SAID),
        ({"separate_reasoning": False, "max_tokens": 10}, "", "<think>\nHm"),
        ({"include_reasoning": False, "max_tokens": 10}, "", ""),
    ],
)
def test_reasoning_is_shown_where_it_is_wanted(
    thinker: httpx.Client, fields: dict[str, object], reasoning: str, content: str, *, stream: bool
) -> None:
    body = chat(SAID, **fields)
    assert shown(thinker, body, stream=stream) == (reasoning, content)


def test_hidden_reasoning_is_counted(thinker: httpx.Client) -> None:
    answer = thinker.post("/v1/chat/completions", json=chat(SAID, include_reasoning=False)).json()
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"include_reasoning": False, "separate_reasoning": False}, "separate_reasoning"),
        ({"include_reasoning": False, "reasoning_format": "none"}, "reasoning_format"),
        ({"reasoning_format": "deepseek-legacy"}, "reasoning_format"),
        ({"stream_reasoning": False}, "stream_reasoning"),
    ],
)
def test_wishes_that_differ_are_refused(
    thinker: httpx.Client, fields: dict[str, object], param: str
) -> None:
    answer = thinker.post("/v1/chat/completions", json=chat("Hi", **fields))
    assert (answer.status_code, read_error(answer)["param"]) == (400, param)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("content", "echo", "answer"),
    [
        ("One, ", True, "One, two"),
        ("One, ", False, "two"),
        ([{"type": "text", "text": "One"}, {"type": "text", "text": ", "}], True, "One, two"),
    ],
)
def test_an_echo_is_the_text_that_goes_on(
    thinker: httpx.Client, content: object, answer: str, *, echo: bool, stream: bool
) -> None:
    body = chat("two", echo=echo, continue_final_message=True)
    body["messages"] = [
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": content},
    ]
    assert shown(thinker, body, stream=stream) == ("", answer)


def test_every_choice_has_the_echo(thinker: httpx.Client) -> None:
    body = chat("two", echo=True, continue_final_message=True, n=2)
    body["messages"] = [
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "One, "},
    ]
    choices = thinker.post("/v1/chat/completions", json=body).json()["choices"]
    assert [choice["message"]["content"] for choice in choices] == ["One, two"] * 2


@pytest.mark.parametrize("stream", [False, True])
def test_no_others_words_are_echoed(thinker: httpx.Client, *, stream: bool) -> None:
    assert shown(thinker, chat("two", echo=True), stream=stream) == ("", "two")
