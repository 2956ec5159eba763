"""An answer is collected from the events of a response, also from other servers' events."""

import json

import pytest

from ouzel.client.base import ApiFailure
from ouzel.terminal_chat.answer import Piece, ToolNote
from ouzel.terminal_chat.response_answer import ResponseAnswer

CALL = {"type": "mcp_call", "id": "m", "server_label": "s", "name": "f", "arguments": "{}"}
LISTED: dict[str, object] = {"server_label": "s", "tools": []}


def feed(answer: ResponseAnswer, type: str, **fields: object) -> Piece:
    return answer.feed(json.dumps({"type": type, **fields}).encode())


def test_two_messages_are_two_paragraphs() -> None:
    answer = ResponseAnswer()
    for text in ("One", "Two"):
        feed(answer, "response.output_text.delta", delta=text)
        feed(answer, "response.output_item.done", item={"type": "message", "id": "x"})
    assert answer.content == "One\n\nTwo"


def test_a_call_is_told_once_and_its_failure_is_a_result() -> None:
    answer = ResponseAnswer()
    feed(answer, "response.output_item.added", item=CALL | {"arguments": ""})
    begun = feed(answer, "response.mcp_call_arguments.done", item_id="m", arguments='{"a":1}')
    assert begun.notes == (ToolNote("s.f", arguments='{"a":1}'),)
    for error in ("no", {"message": "no"}, {"content": [{"type": "text", "text": "no"}]}):
        ended = feed(answer, "response.output_item.done", item=CALL | {"error": error})
        assert ended.notes == (ToolNote("s.f", result="error: no"),)


def test_an_approved_call_is_not_told_again() -> None:
    answer = ResponseAnswer()
    item = CALL | {"approval_request_id": "r"}
    feed(answer, "response.output_item.added", item=item)
    piece = feed(answer, "response.mcp_call_arguments.done", item_id="m", arguments="{}")
    assert piece == Piece()
    assert answer.approved_ids == {"r"}


def test_a_stopped_answer_has_failed_calls_and_the_text_so_far() -> None:
    answer = ResponseAnswer()
    feed(answer, "response.output_item.done", item={"type": "mcp_list_tools", "id": "l"} | LISTED)
    feed(answer, "response.output_item.added", item=CALL)
    assert not answer.is_empty
    feed(answer, "response.output_text.delta", delta="So f")
    answer.is_stopped = True
    message = answer.message()
    assert message["content"] == "So f"
    items = message["items"]
    assert isinstance(items, list)
    assert [item["type"] for item in items] == ["mcp_list_tools", "mcp_call", "message"]
    assert items[1]["status"] == "failed"
    assert "The user stopped this call" in items[1]["error"]["content"][0]["text"]


@pytest.mark.parametrize(
    ("type", "fields", "complaint"),
    [
        ("response.failed", {"response": {"error": {"message": "no paper"}}}, "no paper"),
        ("error", {"message": "no ink"}, "no ink"),
        ("error", {"error": {"message": "no ink"}}, "no ink"),
        ("response.completed", {}, "gives no reason"),
        ("response.output_item.done", {"item": {"id": "x"}}, "unreadable event"),
        ("response.output_item.done", {"item": {"type": "mcp_call"}}, "unreadable event"),
        ("response.output_text.delta", {"delta": 5}, "unreadable event"),
    ],
)
def test_a_failure_is_told(type: str, fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(ApiFailure, match=complaint):
        feed(ResponseAnswer(), type, **fields)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [(None, "stop"), ("max_output_tokens", "length"), ("content_filter", "content_filter")],
)
def test_the_last_event_has_the_reason_and_the_usage(reason: str | None, finish: str) -> None:
    answer = ResponseAnswer()
    usage = {"input_tokens": 7, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
    details = None if reason is None else {"reason": reason}
    feed(answer, "response.incomplete", response={"usage": usage, "incomplete_details": details})
    assert (answer.is_over, answer.finish_reason) == (True, finish)
    assert answer.usage is not None
    counted = (answer.usage.prompt_tokens, answer.usage.completion_tokens)
    assert (*counted, answer.usage.cached_tokens) == (7, 2, 4)


def test_only_the_last_event_ends_a_response() -> None:
    answer = ResponseAnswer()
    assert answer.is_last(b'{"type": "response.completed"}')
    assert answer.is_last(b"{")  # feeding it tells the failure
    assert not answer.is_last(b'{"type": "response.created"}')
    assert feed(answer, "response.of_another_time", value=1) == Piece()
