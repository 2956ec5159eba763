"""A request without a limit of tokens ends after many tokens without visible output."""

import logging
from collections.abc import Iterator

import httpx
import pytest

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.anthropic import exchanges
from tests.api.ollama import lines
from tests.api.requests import Json, chat, join_content, read_events, wait_until
from tests.api.responses.strict import strict_end, strict_response
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN

PATH = "/v1/chat/completions"
LIMIT = 20
BLANKS = " \n" * LIMIT
TOOL: Json = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
HELD = '{"name": "f", "arguments": {"text": "' + "a" * LIMIT


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    output_format = OutputFormat(calls=HERMES, reasoning=THINKING_ONLY)
    setup = running_server(chat_template=QWEN, output_format=output_format, max_hidden_tokens=LIMIT)
    with setup as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def answer(http: httpx.Client, said: str, **fields: object) -> tuple[str, str, int]:
    """Returns the content, the finish reason and the number of tokens of the answer."""
    body = http.post(PATH, json=chat(said, **fields)).json()
    choice = body["choices"][0]
    return choice["message"]["content"], choice["finish_reason"], body["usage"]["completion_tokens"]


def test_blanks_without_end_are_cut_off(http: httpx.Client) -> None:
    events = read_events(http.post(PATH, json=chat("Hi" + BLANKS + "Ho", stream=True)))

    assert answer(http, "Hi" + BLANKS + "Ho") == (
        "Hi" + BLANKS[:LIMIT],
        "length",
        len("Hi") + LIMIT,
    )
    assert join_content(events) == "Hi" + BLANKS[:LIMIT]


def test_text_between_blanks_begins_the_count_anew(http: httpx.Client) -> None:
    said = (BLANKS[: LIMIT - 1] + "x") * 5

    assert answer(http, said) == (said, "stop", len(said) + 1)


def test_text_that_a_parser_holds_back_is_hidden_and_comes_at_the_end(http: httpx.Client) -> None:
    said = HELD + '"}}'

    assert answer(http, said, tools=[TOOL]) == (said[:LIMIT], "length", LIMIT)
    assert answer(http, said) == (said, "stop", len(said) + 1)


def test_reasoning_is_no_hidden_text_even_where_the_client_does_not_see_it(
    http: httpx.Client,
) -> None:
    said = "<think>" + "hm, " * LIMIT + "</think>Yes."

    for shown in (True, False):
        assert answer(http, said, include_reasoning=shown) == ("Yes.", "stop", len(said) + 1)


@pytest.mark.parametrize("fields", [{"max_tokens": 50}, {"min_tokens": len(BLANKS)}])
def test_a_request_that_says_how_long_it_runs_runs_so_long(
    http: httpx.Client, fields: Json
) -> None:
    assert answer(http, BLANKS, **fields) == (BLANKS, "stop", len(BLANKS) + 1)


def test_each_choice_is_counted_by_itself(http: httpx.Client) -> None:
    choices = http.post(PATH, json=chat(BLANKS, n=2)).json()["choices"]

    assert [(each["finish_reason"], len(each["message"]["content"])) for each in choices] == [
        ("length", LIMIT)
    ] * 2


def test_the_engine_stops_and_the_log_says_why(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), server.client() as http:
        http.post(PATH, json=chat(BLANKS), headers={"x-request-id": "blank-1"})

    [line] = [
        record.getMessage()
        for record in caplog.records
        if "no text except blanks" in record.getMessage()
    ]
    assert "choice 0 ended at 20 tokens" in line
    assert "--max-hidden-tokens" in line
    wait_until(lambda: not server.engine.open_request_ids)


def test_a_response_is_incomplete(http: httpx.Client) -> None:
    fields = {"model": "parrot", "input": "Hi" + BLANKS}
    whole = strict_response(http.post("/v1/responses", json=fields).text)
    streamed = strict_end(http.post("/v1/responses", json=fields | {"stream": True}))

    for response in (whole, streamed):
        assert response.status == "incomplete"
        assert response.incomplete_details is not None
        assert response.incomplete_details.reason == "max_output_tokens"


def test_ollamas_chat_ends_with_length(http: httpx.Client) -> None:
    for fields in ({}, {"options": {"num_predict": -1}}):
        answered = lines.read_answer(
            http.post("/api/chat", json=lines.chat(BLANKS, stream=False, **fields))
        )

        assert (answered["done_reason"], answered["eval_count"]) == ("length", LIMIT)


def test_anthropics_messages_have_a_limit_of_their_own(http: httpx.Client) -> None:
    message = http.post(exchanges.PATH, json=exchanges.build_request(BLANKS + "x")).json()

    assert message["stop_reason"] == "end_turn"


def test_a_completion_without_a_limit_is_cut_off(http: httpx.Client) -> None:
    # the model repeats this prompt for ever
    body = {
        "model": "parrot",
        "prompt": " " * 5,
        "max_tokens": -1,
    }
    choice = http.post("/v1/completions", json=body).json()["choices"][0]

    assert (choice["text"], choice["finish_reason"]) == (" " * LIMIT, "length")
