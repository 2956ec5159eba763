"""The requests, snippets, examples and events of OVMS's page on responses, with `--profile ovms` and without."""

from typing import Any  # JSON

import httpx
import openai
import pytest

from tests.peer_documents.conftest import BOTH, DEFAULT, OVMS
from tests.peer_documents.facts import facts_of
from tests.peer_documents.peer import Peer
from tests.peer_documents.shapes import differences, paths_of
from tests.peer_documents.streams import read_data_lines, without_repetitions

Json = dict[str, Any]

pytestmark = pytest.mark.serves  # which cannot be told from the imports

PAGE = facts_of("ovms_responses_2026")
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


def table_of(name: str, end: str = "response.completed") -> list[str]:
    """Returns the names of a table of events in their order, with one of the three ends."""
    return [
        row["event"]
        for row in PAGE["events"][name]
        if row["event"] not in ENDS or row["event"] == end
    ]


def names_of(events: list[Json]) -> list[str]:
    return without_repetitions([event["type"] for event in events])


def check_keys(events: list[Json], table: str) -> None:
    """Checks that each event has the keys that its row of the table names."""
    for event in events:
        assert set(KEYS[table].get(event["type"], [])) - event.keys() == set(), event


def of_item(events: list[Json], index: int) -> list[Json]:
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
    assert differences(EXAMPLE, answer) == []
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

    assert names_of(events) == table_of("standard", end)
    check_keys(events, "standard")
    assert events[0]["response"]["status"] == "in_progress"
    assert events[-1]["response"]["status"] == end.removeprefix("response.")


@OVMS
def test_the_reasoning_events_come_in_the_order_of_their_table(peer: Peer) -> None:
    events = read_events(peer.send(ASK, stream=True, **THINKING))
    created, message = table_of("standard")[:2], table_of("standard")[2:-1]

    assert names_of(events) == [*created, *table_of("reasoning"), *message, "response.completed"]
    assert names_of(of_item(events, 0)) == table_of("reasoning")
    assert names_of(of_item(events, 1)) == message
    check_keys(of_item(events, 0), "reasoning")
    assert of_item(events, 0)[0]["item"]["type"] == "reasoning"


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
def test_without_the_profile_a_summary_that_is_asked_for_has_the_events_of_the_table(
    peer: Peer,
) -> None:
    """OpenAI sends a summary only on request; docs/reference/conformance.md says so."""
    unasked = read_events(peer.send(ASK, stream=True, **THINKING))
    asked = read_events(peer.send(ASK, stream=True, **SUMMARIZED))

    assert "response.reasoning_summary_text.delta" not in names_of(unasked)
    summary = [event for event in of_item(asked, 0) if event["type"] in table_of("reasoning")]
    assert names_of(summary) == table_of("reasoning")
    check_keys(summary, "reasoning")


@BOTH
def test_the_events_of_a_call_come_in_the_order_of_their_table(peer: Peer) -> None:
    events = read_events(peer.send(ASK, stream=True, **CALLING))
    of_call = of_item(events, 0)

    assert names_of(of_call) == table_of("function_call")
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
def test_every_field_of_the_table_of_answers_is_there(peer: Peer) -> None:
    asked = {"temperature": 0.5, "top_p": 0.9, "seed": 1}
    found = paths_of(peer.send(ASK, **asked, max_output_tokens=3).json()) | paths_of(
        peer.send(ASK).json()
    )

    assert {name.replace("[]", "") for name in PAGE["response_fields"]} - found == set()


@OVMS
def test_the_time_of_completion_is_there_only_when_it_is_completed(peer: Peer) -> None:
    events = read_events(peer.send(ASK, stream=True))
    incomplete = peer.send(ASK, **SHORT).json()

    assert "completed_at" not in events[0]["response"]
    assert isinstance(events[-1]["response"]["completed_at"], int)
    assert "completed_at" not in incomplete


@BOTH
def test_the_reason_of_an_incomplete_response(peer: Peer) -> None:
    """OpenAI's word is `max_output_tokens`, which stays the default."""
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
