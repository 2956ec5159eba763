"""Random chats with tools: forced calls are right, and streams equal whole answers.

No mark of the model's own format is left in the text. There are 60 chats (500 before a release),
at temperature 0 and 1, many at a time.
"""

import json
from collections.abc import Iterator
from random import Random

import pytest

from tests.serve.answers import Answered, Json, ask_all, substance
from tests.serve.running import RunningServer, serving
from tests.serve.tool_requests import (
    MARKS,
    allowed_names,
    fits,
    may_call_once,
    must_call,
    obeys,
    tool_request,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Starts a server in f32, so that an answer does not depend on other running requests."""
    exact = ("--precision", "f32", "--kv-cache-dtype", "f32")
    with serving(*exact, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


@pytest.fixture(scope="module")
def bodies(before_release: bool) -> list[Json]:
    random = Random(4)
    return [tool_request(random) for _ in range(500 if before_release else 60)]


@pytest.fixture(scope="module")
def answers(server: RunningServer, bodies: list[Json]) -> list[Answered]:
    return ask_all(server.url, [body | {"stream": True} for body in bodies])


def get_message(answer: Answered) -> Json:
    message: Json = answer.whole["choices"][0]["message"]
    return message


def get_calls(answer: Answered) -> list[Json]:
    calls: list[Json] = get_message(answer).get("tool_calls", [])
    return calls


def is_cut_off(answer: Answered) -> bool:
    return bool(answer.whole["choices"][0]["finish_reason"] == "length")


def test_required_and_named_tools_are_called_and_nothing_is_said(answers: list[Answered]) -> None:
    demanded = [answer for answer in answers if must_call(answer.body) and not is_cut_off(answer)]

    assert len(demanded) > len(answers) / 3
    for answer in demanded:
        assert get_calls(answer), answer.body
        assert not get_message(answer).get("content"), answer.body


def test_only_allowed_tools_are_called(answers: list[Answered]) -> None:
    for answer in answers:
        assert {call["function"]["name"] for call in get_calls(answer)} <= allowed_names(
            answer.body
        ), answer.body


def test_arguments_fit_the_schema_wherever_they_have_to(answers: list[Answered]) -> None:
    num_held = 0
    for answer in answers:
        calls = get_calls(answer)
        for function in [
            call["function"] for call in (calls[:-1] if is_cut_off(answer) else calls)
        ]:
            if obeys(function["name"], answer.body):
                num_held += 1
                assert fits(function["name"], function["arguments"]), (function, answer.body)
    assert num_held > len(answers) / 3


def test_arguments_are_json_objects_even_where_they_are_free(answers: list[Answered]) -> None:
    for answer in answers:
        for call in [] if is_cut_off(answer) else get_calls(answer):
            assert isinstance(json.loads(call["function"]["arguments"]), dict), answer.body


def test_one_call_at_most_where_more_would_be_wrong(answers: list[Answered]) -> None:
    for answer in answers:
        assert not may_call_once(answer.body) or len(get_calls(answer)) <= 1, answer.body


def test_an_answer_that_calls_ends_with_tool_calls(answers: list[Answered]) -> None:
    for answer in answers:
        expected = "length" if is_cut_off(answer) else "tool_calls" if get_calls(answer) else "stop"
        assert answer.whole["choices"][0]["finish_reason"] == expected, answer.body


def test_few_answers_are_cut_off(answers: list[Answered]) -> None:
    assert sum(map(is_cut_off, answers)) < len(answers) / 25


def test_no_mark_of_the_format_reaches_the_text_of_a_chat_with_tools(
    answers: list[Answered],
) -> None:
    for answer in answers:
        shown = (get_message(answer).get("content") or "") + get_message(answer).get(
            "reasoning", ""
        )
        own_marks = [
            mark for mark in MARKS if mark not in answer.body["messages"][-1]["content"]
        ]  # else it is text
        assert "tools" not in answer.body or not any(mark in shown for mark in own_marks), (
            shown,
            answer.body,
        )


def test_the_first_delta_of_a_call_has_all_but_arguments(answers: list[Answered]) -> None:
    for answer in answers:
        begun: set[int] = set()
        deltas = [choice["delta"] for chunk in answer.chunks for choice in chunk["choices"]]
        for piece in [piece for delta in deltas for piece in delta.get("tool_calls", [])]:
            if piece["index"] in begun:
                assert piece.keys() == {"index", "function"}
                assert piece["function"].keys() == {"arguments"}
            else:
                assert piece["index"] == len(begun)
                begun.add(piece["index"])
                assert piece["type"] == "function"
                assert piece["id"]
                assert piece["function"]["name"]
                assert piece["function"]["arguments"] == ""


def test_ids_of_calls_are_unique(answers: list[Answered]) -> None:
    ids = [call["id"] for answer in answers for call in get_calls(answer)]

    assert len(set(ids)) == len(ids) > len(answers) / 3


def test_usage_adds_up(answers: list[Answered]) -> None:
    num_reasoning = 0
    for answer in answers:
        usage = answer.whole["usage"]
        reasoning_tokens = usage["completion_tokens_details"]["reasoning_tokens"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        assert (reasoning_tokens > 0) == bool(get_message(answer).get("reasoning")), answer.body
        assert reasoning_tokens < usage["completion_tokens"] or is_cut_off(answer), answer.body
        num_reasoning += reasoning_tokens > 0
    assert num_reasoning > len(answers) / 10


@pytest.mark.release("long streams of calls and formats")
def test_a_stream_equals_the_whole_answer(server: RunningServer, answers: list[Answered]) -> None:
    """Compares each answer in which the model may choose to call, and every third other answer."""
    compared = [
        answer
        for place, answer in enumerate(answers)
        if not must_call(answer.body) or place % 3 == 0
    ]
    whole = ask_all(server.url, [answer.body | {"stream": False} for answer in compared])

    for streamed, unstreamed in zip(compared, whole, strict=True):
        assert substance(streamed) == substance(unstreamed), streamed.body
