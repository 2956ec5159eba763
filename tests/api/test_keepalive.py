"""A stream that waits sends comments, which clients skip, to keep its connection open."""

import json
import logging
from collections.abc import Iterator

import httpx
import openai
import pytest

from ouzel.config import LimitsConfig
from tests.api.requests import chat, join_content, read_events, wait_until
from tests.api.serving import RunningServer, running_server

COMMENT = ": keep-alive"
LIMITS = LimitsConfig(stream_keepalive_s=0.05)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Yields a server whose tokens take four times the interval between two comments."""
    store_url = f"sqlite:///{tmp_path_factory.mktemp('store')}/responses.sqlite3"
    with running_server({"step_s": 0.2}, LIMITS, store_url=store_url) as server:
        yield server


def read_lines(server: RunningServer, path: str, body: dict[str, object]) -> list[str]:
    return httpx.post(f"{server.url}{path}", json=body, timeout=None).text.splitlines()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", chat("ab", stream=True)),
        ("/v1/completions", {"model": "parrot", "prompt": "ab", "max_tokens": 2, "stream": True}),
        ("/v1/responses", {"model": "parrot", "input": "ab", "stream": True}),
    ],
)
def test_comments_come_before_and_between_the_events(
    slow: RunningServer, path: str, body: dict[str, object]
) -> None:
    lines = read_lines(slow, path, body)

    first_said = next(i for i, line in enumerate(lines) if line.startswith(("data", "event")))
    assert COMMENT in lines[first_said:]
    # the events of a response's beginning come before the first comment
    assert path == "/v1/responses" or lines[:2] == [
        COMMENT,
        "",
    ]
    assert all(line == COMMENT or line.startswith(("data: ", "event: ")) for line in lines if line)
    assert lines[-2] == "data: [DONE]"


def test_comments_come_between_tokens_without_text() -> None:
    # the server holds the spaces back, because they may be the beginning of the stop string
    body = chat(f"a{' ' * 100}", stream=True, stop=[" " * 101])
    with running_server({"step_s": 0.02}, LIMITS) as server:
        lines = read_lines(server, "/v1/chat/completions", body)

    first_said = next(i for i, line in enumerate(lines) if line.startswith("data"))
    assert COMMENT in lines[first_said:]


def test_a_response_that_is_followed_has_them_too(slow: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{slow.url}/v1", api_key="none") as client:
        response = client.responses.create(model="parrot", input="a" * 1000, background=True)
        with httpx.stream(
            "GET", f"{slow.url}/v1/responses/{response.id}?stream=true", timeout=None
        ) as followed:
            assert COMMENT in followed.iter_lines()
        client.responses.cancel(response.id)


def test_the_official_client_skips_comments(slow: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{slow.url}/v1", api_key="none", max_retries=0) as client:
        chunks = list(
            client.chat.completions.create(
                model="parrot", messages=[{"role": "user", "content": "ab"}], stream=True
            )
        )
        events = list(client.responses.create(model="parrot", input="ab", stream=True))

    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "ab"
    )
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "ab"


def test_an_error_after_a_comment_is_a_frame_of_the_stream(slow: RunningServer) -> None:
    response = httpx.post(
        f"{slow.url}/v1/chat/completions", json=chat("<|die|>", stream=True), timeout=None
    )

    assert response.status_code == 200
    assert response.text.startswith(COMMENT)
    frames = response.text.split("\n\n")
    assert json.loads(frames[-2].removeprefix("data: "))["error"]["code"] == "engine_failed"
    wait_until(lambda: httpx.get(f"{slow.url}/health").status_code == 200)


def test_a_client_that_leaves_during_a_silence_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    with running_server({"step_s": 1.0}, LIMITS) as server:
        with httpx.stream(
            "POST", f"{server.url}/v1/chat/completions", json=chat("ab", stream=True)
        ) as response:
            assert next(response.iter_lines()) == COMMENT
        wait_until(lambda: server.engine.num_unfinished == 0)
    assert "POST /v1/chat/completions 499 " in caplog.text


def test_json_lines_and_streams_without_keepalive_have_none(slow: RunningServer) -> None:
    lines = read_lines(
        slow, "/invocations", {"inputs": "ab", "parameters": {"max_new_tokens": 2}, "stream": True}
    )
    assert [json.loads(line)["token"]["text"] for line in lines] == ["a", "b"]

    with running_server({"step_s": 0.2}, LimitsConfig(stream_keepalive_s=0)) as server:
        assert COMMENT not in read_lines(server, "/v1/chat/completions", chat("ab", stream=True))


def test_a_quick_stream_has_none(server: RunningServer) -> None:
    response = httpx.post(
        f"{server.url}/v1/chat/completions", json=chat("a" * 50, stream=True), timeout=None
    )

    assert join_content(read_events(response)) == "a" * 50
    assert COMMENT not in response.text
