"""Tools that the server does not run are left out with a warning, or refused."""

import json
import logging

import httpx
import pytest

from tests.api.requests import read_error, read_events
from tests.api.responses.strict import named_events
from tests.api.responses.test_response import LOOK
from tests.api.responses.test_tools import SEARCH, body, serve_calling_model


def test_tools_of_unknown_types_are_left_out_where_there_are_others(
    thinker_http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    asked = [
        body("Hi", LOOK, *more)
        for more in ([], [SEARCH, {"type": "mcp", "server_label": "x", "headers": {}}])
    ]
    plain, more = [thinker_http.post("/v1/responses", json=each).json() for each in asked]
    assert plain["usage"]["input_tokens"] == more["usage"]["input_tokens"]
    [line] = [record.message for record in caplog.records if "left out" in record.message]
    assert (
        line
        == 'left out tools that this server does not run: tools[1] ("web_search"), tools[2] ("mcp")'
    )
    assert not [record.message for record in caplog.records if "ignored fields" in record.message]


SEARCH_WARNING = 'tools[1] ("web_search") was left out: this server runs no such tool'
CHAT_WARNING = f"{SEARCH_WARNING} (the operator turns it on with --chat-tools requested)"


def test_a_response_warns_of_tools_that_were_left_out(thinker_http: httpx.Client) -> None:
    answer = thinker_http.post("/v1/responses", json=body("Hi", LOOK, SEARCH))
    assert answer.headers["x-ouzel-warnings"] == SEARCH_WARNING
    shown = answer.json()
    assert shown["warnings"] == [SEARCH_WARNING]
    assert thinker_http.get(f"/v1/responses/{shown['id']}").json()["warnings"] == [SEARCH_WARNING]
    stream = thinker_http.post("/v1/responses", json=body("Hi", LOOK, SEARCH, stream=True))
    assert stream.headers["x-ouzel-warnings"] == SEARCH_WARNING
    (_, first), *_, (_, last) = named_events(stream)
    assert [json.loads(event)["response"]["warnings"] for event in (first, last)] == [
        [SEARCH_WARNING]
    ] * 2
    plain = thinker_http.post("/v1/responses", json=body("Hi", LOOK))
    assert "x-ouzel-warnings" not in plain.headers and "warnings" not in plain.json()


def test_a_chat_warns_of_tools_that_were_left_out(thinker_http: httpx.Client) -> None:
    look = {"type": "function", "function": {"name": "look"}}
    asked = {
        "model": "parrot",
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [look, SEARCH],
    }
    answer = thinker_http.post("/v1/chat/completions", json=asked)
    assert answer.headers["x-ouzel-warnings"] == CHAT_WARNING and answer.json()["warnings"] == [
        CHAT_WARNING
    ]
    stream = thinker_http.post("/v1/chat/completions", json=asked | {"stream": True})
    assert stream.headers["x-ouzel-warnings"] == CHAT_WARNING
    first, *others = read_events(stream)
    assert json.loads(first)["warnings"] == [CHAT_WARNING] and not any(
        "warnings" in chunk for chunk in others
    )
    plain = thinker_http.post("/v1/chat/completions", json=asked | {"tools": [look]})
    assert "x-ouzel-warnings" not in plain.headers and "warnings" not in plain.json()


@pytest.mark.parametrize(
    "kind",
    ["säge\r\nx: y" * 50, "\x7f\x00\x1b", "\x7f" * 99, "🦉" * 99],
    ids=["text", "control", "delete", "owl"],
)
def test_a_warning_is_ascii_and_bounded(thinker_http: httpx.Client, kind: str) -> None:
    """An HTTP server cannot send control characters in a header."""
    tools = [LOOK, *({"type": kind} for _ in range(100))]
    text = thinker_http.post("/v1/responses", json=body("Hi", *tools)).headers["x-ouzel-warnings"]
    assert (
        text.isascii()
        and text.isprintable()
        and text.count("was left out") >= 5
        and len(text) <= 4000
    )


def test_a_server_may_refuse_tools_that_it_does_not_run() -> None:
    with serve_calling_model(refuses_unknown_tools=True) as server, server.client() as http:
        error = read_error(http.post("/v1/responses", json=body("Hi", LOOK, SEARCH)))
        assert error["param"] == "tools[1].type"
        asked = body("Hi", LOOK) | {"input": [{"type": "web_search_call", "status": "searching"}]}
        assert read_error(http.post("/v1/responses", json=asked))["param"] == "input[0].type"
        chat = {
            "model": "parrot",
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [LOOK, SEARCH],
        }
        assert read_error(http.post("/v1/chat/completions", json=chat))["param"] == "tools[1].type"
