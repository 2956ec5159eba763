"""Sends responses in OVMS's dialect and reads their answers and events."""

import json
from typing import Any  # JSON

import httpx

from tests.api.requests import Json
from tests.api.responses.strict import check_lives, named_events, strict_event
from tests.api.responses.test_response import SAYINGS

PATH = "/v3/responses"
THOUGHT = SAYINGS["reasoning"]
OF_SUMMARY = [
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.output_item.done",
]
OF_TEXT = [
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
]


def post_response(http: httpx.Client, body: Json) -> Any:
    answer = http.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def read_checked_events(answer: httpx.Response) -> list[Any]:
    """Returns the events of a whole stream; checks their numbers and, without responses, types."""
    pairs = named_events(answer)
    events = [json.loads(data) for _, data in pairs]
    check_lives(
        [strict_event(name, data) for name, data in pairs if "response" not in json.loads(data)]
    )
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


def post_stream(http: httpx.Client, body: Json) -> list[Any]:
    return read_checked_events(http.post(PATH, json=body | {"stream": True}))


def join_text(response: Any) -> str:
    return "".join(
        part["text"]
        for item in response["output"]
        if item["type"] == "message"
        for part in item["content"]
    )
