"""The loop of tools that the server runs: calls, their results, and further turns of the model.

The model repeats the last message that it reads. A result of a tool is such a message.
"""

import json
import time
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import openai
import pytest
from openai.types.responses import ResponseFunctionWebSearch, ResponseOutputMessage

from ouzel.responses.hosted.kinds import HostedKinds
from tests.api.requests import Json, read_error
from tests.api.responses.searching import SearchKind, search_kinds
from tests.api.responses.strict import strict_events, strict_response
from tests.api.responses.test_tools import write_call
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer

SEARCH: Json = {"type": "web_search"}
PREVIEW: Json = {"type": "web_search_preview"}
LOOK: Json = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def search_for(*queries: str) -> str:
    """Writes calls of the search, which the model repeats."""
    return "\n".join(write_call("web_search", {"query": query}) for query in queries)


@pytest.fixture(scope="module")
def kind() -> SearchKind:
    return SearchKind()


@pytest.fixture(scope="module")
def server(kind: SearchKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    path = tmp_path_factory.mktemp("store") / "responses.sqlite3"
    with thinking_server(f"sqlite:///{path}", hosted=search_kinds(kind, max_calls=5)) as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(autouse=True)
def everything_is_closed(kind: SearchKind) -> Iterator[None]:
    kind.queries.clear()
    yield
    while kind.num_open:  # a response in the background closes its tools when it ends
        time.sleep(0.001)


def create(http: httpx.Client, text: object, **fields: object) -> dict[str, Any]:
    body = {"input": text, "tools": [SEARCH], **fields}
    answer = http.post("/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    strict_response(answer.text)
    response: dict[str, Any] = answer.json()
    return response


def list_kinds(response: dict[str, Any]) -> list[str]:
    return [item["type"] for item in response["output"]]


def test_the_model_reads_the_result_and_answers(http: httpx.Client, kind: SearchKind) -> None:
    response = create(http, search_for("otters"))
    search, message = response["output"]
    assert kind.queries == ["otters"]
    assert search["status"] == "completed"
    assert search["action"] == {"type": "search", "query": "otters", "queries": ["otters"]}
    assert search["output"] == "found otters 【1】"
    assert "found otters 【1】" in message["content"][0]["text"]
    assert response["status"] == "completed"


def test_a_marker_becomes_a_citation_that_points_into_the_text(http: httpx.Client) -> None:
    message = create(http, search_for("otters"))["output"][1]
    [part] = message["content"]
    [citation] = part["annotations"]
    assert citation["type"] == "url_citation"
    assert (citation["title"], citation["url"]) == ("OTTERS", "https://example.org/otters")
    assert part["text"][citation["start_index"] : citation["end_index"]] == "【1】"


def test_the_usage_counts_all_turns(http: httpx.Client) -> None:
    text = search_for("otters")
    alone = create(http, "found otters", tools=[])
    response = create(http, text)
    assert response["usage"]["input_tokens"] > 2 * alone["usage"]["input_tokens"]
    assert response["usage"]["output_tokens"] > len(text)


def test_calls_of_one_turn_run_together_and_stay_in_order(
    http: httpx.Client, kind: SearchKind
) -> None:
    response = create(http, search_for("a", "b", "c"))
    assert sorted(kind.queries) == ["a", "b", "c"]
    assert [item["action"]["query"] for item in response["output"][:3]] == ["a", "b", "c"]
    assert list_kinds(response) == ["web_search_call"] * 3 + ["message"]


def test_a_result_may_lead_to_another_call(http: httpx.Client, kind: SearchKind) -> None:
    first = search_for("second")
    kind.find = lambda query: first if query == "first" else f"found {query}"
    try:
        response = create(http, search_for("first"))
    finally:
        kind.find = lambda query: f"found {query}"
    assert kind.queries == ["first", "second"]
    searches = [item for item in response["output"] if item["type"] == "web_search_call"]
    assert [search["action"]["query"] for search in searches] == ["first", "second"]
    assert "found second" in response["output"][-1]["content"][0]["text"]


def test_a_stream_has_the_events_of_openai(http: httpx.Client) -> None:
    body = {"input": search_for("otters"), "tools": [SEARCH], "stream": True}
    events = strict_events(http.post("/v1/responses", json=body))
    kinds = [event.type for event in events]
    start = kinds.index("response.output_item.added")
    assert kinds[start : start + 5] == [
        "response.output_item.added",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.output_item.done",
    ]
    assert "response.output_text.annotation.added" in kinds
    assert kinds[-1] == "response.completed"


def test_the_official_client_reads_search_and_citation(server: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        response = client.responses.create(input=search_for("x"), tools=[{"type": "web_search"}])
    search, message = response.output
    assert isinstance(search, ResponseFunctionWebSearch)
    assert isinstance(message, ResponseOutputMessage)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("fault", "The tool failed for a reason that is not the fault of this call."),
        ("refusal", "the search engine is down"),
    ],
)
def test_the_model_reads_why_a_call_failed(http: httpx.Client, query: str, reason: str) -> None:
    response = create(http, search_for(query))
    search, message = response["output"]
    assert (search["status"], search["output"]) == ("failed", reason)
    assert reason in message["content"][0]["text"]


def test_calls_beyond_the_limit_of_the_request_are_dropped(
    http: httpx.Client, kind: SearchKind
) -> None:
    response = create(http, search_for("a", "b", "c"), max_tool_calls=2)
    assert sorted(kind.queries) == ["a", "b"]
    assert list_kinds(response) == ["web_search_call", "web_search_call", "message"]


def test_a_model_that_always_calls_ends_at_the_limit_of_the_server(
    http: httpx.Client, kind: SearchKind
) -> None:
    again = search_for("again")
    kind.find = lambda query: again
    try:
        response = create(http, again)
    finally:
        kind.find = lambda query: f"found {query}"
    assert len(kind.queries) == 5
    assert response["status"] == "completed"


def test_a_long_result_is_cut_and_says_so(http: httpx.Client, kind: SearchKind) -> None:
    kind.find = lambda query: "x" * 3000
    try:
        search = create(http, search_for("long"))["output"][0]
    finally:
        kind.find = lambda query: f"found {query}"
    text, _, note = search["output"].partition("\n")
    assert len(text) == 2000
    assert note == "[The rest of this output, 1004 characters, is left out.]"


def test_a_forced_choice_holds_for_the_first_turn_only(
    http: httpx.Client, kind: SearchKind
) -> None:
    response = create(
        http, search_for("forced"), tools=[PREVIEW], tool_choice={"type": "web_search_preview"}
    )
    assert kind.queries == ["forced"]
    assert list_kinds(response) == ["web_search_call", "message"]
    assert response["tool_choice"] == {"type": "web_search_preview"}


def test_the_loop_stops_where_the_client_must_act(http: httpx.Client, kind: SearchKind) -> None:
    text = write_call("look", {}) + "\n" + search_for("otters")
    response = create(http, text, tools=[LOOK, SEARCH])
    assert list_kinds(response) == ["function_call", "web_search_call"]
    assert response["status"] == "completed"
    output = {
        "type": "function_call_output",
        "call_id": response["output"][0]["call_id"],
        "output": "seen",
    }
    following = create(http, [output], tools=[LOOK, SEARCH], previous_response_id=response["id"])
    assert "seen" in following["output"][0]["content"][0]["text"]
    assert kind.queries == ["otters"]


def test_a_client_without_a_store_sends_the_items_back(http: httpx.Client) -> None:
    first = create(http, search_for("otters"), store=False)
    items = [{"role": "user", "content": "q"}, *first["output"], {"role": "user", "content": "go"}]
    rendered = http.post("/v1/responses/input_tokens", json={"input": items, "tools": [SEARCH]})
    without = [item for item in items if item.get("type") != "web_search_call"]
    shorter = http.post("/v1/responses/input_tokens", json={"input": without, "tools": [SEARCH]})
    assert rendered.json()["input_tokens"] > shorter.json()["input_tokens"]


def test_later_sources_get_higher_numbers(http: httpx.Client) -> None:
    first = create(http, search_for("otters"))
    second = create(http, search_for("seals"), previous_response_id=first["id"])
    assert second["output"][0]["sources"][0]["number"] == 2


def test_a_stored_response_has_the_same_items(http: httpx.Client) -> None:
    response = create(http, search_for("otters"))
    assert http.get(f"/v1/responses/{response['id']}").json() == response


def test_a_conversation_keeps_the_search(http: httpx.Client) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    create(http, search_for("otters"), conversation=conversation)
    items = http.get(f"/v1/conversations/{conversation}/items").json()["data"]
    assert [item["type"] for item in items] == ["message", "web_search_call", "message"]


def test_secrets_are_not_repeated(http: httpx.Client) -> None:
    tool = {**SEARCH, "secret": "s3cret"}
    response = create(http, search_for("otters"), tools=[tool], background=True)
    assert "s3cret" not in json.dumps(response)
    assert response["tools"] == [SEARCH]


def test_the_tool_is_open_only_until_the_client_leaves(
    server: RunningServer, kind: SearchKind
) -> None:
    kind.may_end = False
    try:
        body = {"input": search_for("slow"), "tools": [SEARCH], "stream": True}
        with server.client() as client, client.stream("POST", "/v1/responses", json=body) as stream:
            for line in stream.iter_lines():
                if "web_search_call.searching" in line:
                    break
        while kind.num_open:
            time.sleep(0.001)
    finally:
        kind.may_end = True


def test_a_cancelled_response_cancels_its_calls(http: httpx.Client, kind: SearchKind) -> None:
    kind.may_end = False
    try:
        response = create(http, search_for("slow"), background=True)
        while not kind.queries:
            time.sleep(0.001)
        cancelled = http.post(f"/v1/responses/{response['id']}/cancel").json()
    finally:
        kind.may_end = True
    assert cancelled["status"] == "cancelled"
    assert cancelled["output"][0]["status"] == "failed"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"tools": [{**SEARCH, "nonsense": 1}]},
            "tools[0].nonsense must not be given",
        ),
        (
            {"tool_choice": {"type": "file_search"}},
            "tool_choice must name one of the tools, given file_search",
        ),
        (
            {"n": 2},
            "n must be 1 beside tools that this server runs in responses, given 2",
        ),
    ],
)
def test_contradictions_are_refused(http: httpx.Client, fields: Json, message: str) -> None:
    body = {"input": "hi", "tools": [SEARCH], **fields}
    answer = http.post("/v1/responses", json=body)
    assert (answer.status_code, read_error(answer)["message"]) == (400, message)


def test_a_tool_that_is_turned_off_says_how_to_turn_it_on(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    hosted = HostedKinds(hints={"web_search": "see --web-search-url"})
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/responses.sqlite3"
    with thinking_server(url, hosted=hosted) as server, server.client() as client:
        answer = client.post("/v1/responses", json={"input": "hi", "tools": [SEARCH]})
    assert "see --web-search-url" in read_error(answer)["message"]
