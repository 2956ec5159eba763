"""OVMS's page on responses: requests, examples and events, with and without `--profile ovms`."""

from typing import Any  # JSON

import httpx
import openai
import pytest

from tests.peer_documents.conftest import BOTH, DEFAULT, OVMS
from tests.peer_documents.facts import read_facts
from tests.peer_documents.peer import Peer
from tests.peer_documents.shapes import find_differences, list_paths
from tests.peer_documents.streams import merge_repeated, read_data_lines

Json = dict[str, Any]

pytestmark = pytest.mark.serves  # the imports alone do not give this marker

PAGE = read_facts("ovms_responses_2026")
ASK, ASK_OF_A_PICTURE = PAGE["requests"]
[EXAMPLE] = PAGE["examples"]["response"]
[SNIPPET] = PAGE["snippets"]
KEYS = {
    name: {row["event"]: row["keys"] for row in table} for name, table in PAGE["events"].items()
}
ENDS = ("response.completed", "response.incomplete", "response.failed")

SHORT = {"max_output_tokens": 3}
THINKING = {"chat_template_kwargs": {"enable_thinking": True}}
SUMMARIZED = THINKING | {"reasoning": {"summary": "auto"}}
CALLING = {
    "tools": [
        {
            "type": "function",
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"enum": ["Rome"]}},
                "required": ["city"],
            },
        }
    ],
    "tool_choice": "required",
}


def read_events(response: httpx.Response) -> list[Json]:
    *events, done = read_data_lines(response)
    assert done == "[DONE]"
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))
    return events


def read_table(name: str, end: str = "response.completed") -> list[str]:
    """Returns the event names of a table in their order, with `end` as the only end."""
    return [
        row["event"]
        for row in PAGE["events"][name]
        if row["event"] not in ENDS or row["event"] == end
    ]


def list_names(events: list[Json]) -> list[str]:
    return merge_repeated([event["type"] for event in events])


def check_keys(events: list[Json], table: str) -> None:
    """Checks that each event has the keys that the table names for it."""
    for event in events:
        assert set(KEYS[table].get(event["type"], [])) - event.keys() == set(), event


def filter_by_output_index(events: list[Json], index: int) -> list[Json]:
    return [event for event in events if event.get("output_index") == index]


@BOTH
@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("request_line", [ASK, ASK_OF_A_PICTURE], ids=["text", "picture"])
def test_a_request_gets_an_answer_with_every_key_of_the_example(
    peer: Peer, request_line: str, is_stream: bool
) -> None:
    response = peer.send(request_line, stream=is_stream)
    answer = read_events(response)[-1]["response"] if is_stream else response.json()

    assert response.status_code == 200, response.text
    assert find_differences(EXAMPLE, answer) == []
    assert (answer["status"], answer["error"]) == ("completed", None)
    assert answer["id"].startswith("resp")
    if request_line is ASK_OF_A_PICTURE:
        assert "red circle" in answer["output"][0]["content"][0]["text"]


@BOTH
@pytest.mark.parametrize(
    ("fields", "end"),
    [({}, "response.completed"), (SHORT, "response.incomplete")],
    ids=["whole", "short"],
)
def test_the_standard_events_come_in_the_order_of_their_table(
    peer: Peer, fields: Json, end: str
) -> None:
    events = read_events(peer.send(ASK, stream=True, **fields))

    assert list_names(events) == read_table("standard", end)
    check_keys(events, "standard")
    assert events[0]["response"]["status"] == "in_progress"
    assert events[-1]["response"]["status"] == end.removeprefix("response.")


@OVMS
def test_the_reasoning_events_come_in_the_order_of_their_table(peer: Peer) -> None:
    events = read_events(peer.send(ASK, stream=True, **THINKING))
    created, message = read_table("standard")[:2], read_table("standard")[2:-1]

    assert list_names(events) == [
        *created,
        *read_table("reasoning"),
        *message,
        "response.completed",
    ]
    assert list_names(filter_by_output_index(events, 0)) == read_table("reasoning")
    assert list_names(filter_by_output_index(events, 1)) == message
    check_keys(filter_by_output_index(events, 0), "reasoning")
    assert filter_by_output_index(events, 0)[0]["item"]["type"] == "reasoning"


@OVMS
@pytest.mark.parametrize("is_stream", [False, True])
def test_the_reasoning_is_a_summary(peer: Peer, is_stream: bool) -> None:
    response = peer.send(ASK, stream=is_stream, **THINKING)
    answer = read_events(response)[-1]["response"] if is_stream else response.json()

    reasoning, message = answer["output"]
    assert reasoning["type"] == "reasoning"
    assert {"id", "type", "summary"} <= reasoning.keys()
    assert [part["type"] for part in reasoning["summary"]] == ["summary_text"]
    assert reasoning["summary"][0]["text"]
    assert message["type"] == "message"


@DEFAULT
def test_without_the_profile_a_requested_summary_has_the_events_of_the_table(
    peer: Peer,
) -> None:
    """OpenAI sends a summary only on request, as docs/reference/conformance.md says."""
    unasked = read_events(peer.send(ASK, stream=True, **THINKING))
    asked = read_events(peer.send(ASK, stream=True, **SUMMARIZED))

    assert "response.reasoning_summary_text.delta" not in list_names(unasked)
    summary = [
        event
        for event in filter_by_output_index(asked, 0)
        if event["type"] in read_table("reasoning")
    ]
    assert list_names(summary) == read_table("reasoning")
    check_keys(summary, "reasoning")


@BOTH
def test_the_events_of_a_call_come_in_the_order_of_their_table(peer: Peer) -> None:
    events = read_events(peer.send(ASK, stream=True, **CALLING))
    of_call = filter_by_output_index(events, 0)

    assert list_names(of_call) == read_table("function_call")
    check_keys(of_call, "function_call")
    item = of_call[0]["item"]
    assert {"type", "call_id", "name", "arguments"} <= item.keys()
    assert (item["type"], item["arguments"]) == ("function_call", "")
    assert {event["call_id"] for event in of_call if event["type"].endswith("arguments.delta")} == {
        item["call_id"]
    }


@BOTH
def test_every_item_has_the_fields_of_its_type(peer: Peer) -> None:
    [message] = peer.send(ASK).json()["output"]
    [call] = peer.send(ASK, **CALLING).json()["output"]

    assert {"id", "type", "role", "status", "content"} <= message.keys()
    assert {"id", "type", "status", "call_id", "name", "arguments"} <= call.keys()


@BOTH
def test_an_answer_has_every_field_of_the_table(peer: Peer) -> None:
    asked = {"temperature": 0.5, "top_p": 0.9, "seed": 1}
    found = list_paths(peer.send(ASK, **asked, max_output_tokens=3).json()) | list_paths(
        peer.send(ASK).json()
    )

    assert {name.replace("[]", "") for name in PAGE["response_fields"]} - found == set()


@OVMS
def test_only_a_completed_response_has_a_time_of_completion(peer: Peer) -> None:
    events = read_events(peer.send(ASK, stream=True))
    incomplete = peer.send(ASK, **SHORT).json()

    assert "completed_at" not in events[0]["response"]
    assert isinstance(events[-1]["response"]["completed_at"], int)
    assert "completed_at" not in incomplete


@BOTH
def test_an_incomplete_response_has_the_profiles_reason(peer: Peer) -> None:
    """OpenAI's word `max_output_tokens` stays the default."""
    details = peer.send(ASK, **SHORT).json()["incomplete_details"]

    assert details == {"reason": "max_tokens" if peer.profile == "ovms" else "max_output_tokens"}
    assert peer.send(ASK).json()["incomplete_details"] is None


@BOTH
def test_the_snippet_of_the_page_runs(peer: Peer) -> None:
    snippet = SNIPPET.replace("http://localhost:8000", peer.root)
    whole: Json = {}
    exec(snippet, whole)
    streamed: Json = {}
    exec(snippet.replace("stream=False", "stream=True"), streamed)
    events = list(streamed["response"])

    assert whole["response"].output_text != ""
    assert events[-1].response.output_text == whole["response"].output_text
    assert isinstance(whole["response"], openai.types.responses.Response)
    for names in (whole, streamed):
        names["client"].close()
