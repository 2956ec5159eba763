"""An answer grows with the pieces that Ouzel and other servers send."""

import json

import pytest

from ouzel.client.base import ApiFailure
from ouzel.terminal_chat.answer import Answer


def build_answer(*deltas: object) -> Answer:
    answer = Answer()
    for delta in deltas:
        answer.feed(json.dumps({"choices": [{"delta": delta}]}).encode())
    return answer


def call(
    index: int | None, call_id: str | None, name: str | None, arguments: str
) -> dict[str, object]:
    return {
        "tool_calls": [
            {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
        ]
    }


def list_calls(answer: Answer) -> list[tuple[str, str, str]]:
    return [(each.id, each.name, each.arguments) for each in answer.tool_calls]


def test_calls_come_in_parts_and_beside_each_other() -> None:
    answer = build_answer(
        call(0, "a", "add", ""),
        call(1, "b", "sub", "{"),
        call(0, None, None, "{}"),
        call(1, "b", "", "}"),
    )
    assert list_calls(answer) == [("a", "add", "{}"), ("b", "sub", "{}")]


def test_calls_that_all_have_the_same_index_or_none_stay_apart() -> None:
    assert list_calls(build_answer(call(0, "a", "add", "{}"), call(0, "b", "sub", "{}"))) == [
        ("a", "add", "{}"),
        ("b", "sub", "{}"),
    ]
    assert (
        len(build_answer(call(None, "a", "add", "{}"), call(None, "b", "sub", "{}")).tool_calls)
        == 2
    )


@pytest.mark.parametrize("index", [-1, 10**12])
def test_an_index_is_only_a_name(index: int) -> None:
    assert list_calls(build_answer(call(index, "a", "add", "{}"))) == [("a", "add", "{}")]


def test_members_may_be_null() -> None:
    answer = build_answer(
        None, {"content": None, "tool_calls": None}, {"tool_calls": [{"id": "a", "function": None}]}
    )
    assert (answer.content, list_calls(answer)) == ("", [("a", "", "")])


def test_counts_of_another_kind_stay_unchanged() -> None:
    answer = Answer()
    answer.feed(b'{"choices": [], "usage": {"prompt_tokens": null}}')
    assert answer.usage is None
    assert bytes(answer.usage_json or b"") == b'{"prompt_tokens": null}'


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (b'{"error": {"message": null, "code": 500}}', "gives no reason"),
        (b'{"error": "out of memory"}', "out of memory"),
        (b'{"object": "error", "message": "out of memory", "code": 500}', "out of memory"),
        (b'{"choices": [{"delta": {"content": "\xff"}}]}', "unreadable chunk"),
        (b'{"choices": ' + b"[" * 5000, "unreadable chunk"),
        (b"<html>", "unreadable chunk"),
    ],
)
def test_errors_and_malformed_chunks_are_failures(event: bytes, complaint: str) -> None:
    with pytest.raises(ApiFailure, match=complaint):
        Answer().feed(event)
