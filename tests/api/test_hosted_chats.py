"""The server runs tools in chat completions; the model repeats the last message that it reads."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # JSON

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.mcp.records import RemoteServer
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.mcp_kind import McpKind
from tests.api.requests import Json, read_error
from tests.api.responses.searching import SearchKind
from tests.api.responses.test_hosted_loop import search_for
from tests.api.responses.test_tools import write_call
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer
from tests.hosted_tools.mcp_server import make_server, running

ADD = write_call("add", {"a": 2, "b": 3})
LOOK: Json = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
SEARCH: Json = {"type": "web_search"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(make_server().streamable_http_app()) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module")
def kind() -> SearchKind:
    return SearchKind()


def make_kinds(kind: SearchKind, url: str, **limits: Any) -> HostedKinds:
    allowed = read_media_hosts((url.split("/")[2],), "allowed_mcp_hosts")
    servers = {"sums": RemoteServer("sums", url, {}, is_operators=True)}
    mcp = McpKind(servers, allowed, timeout_s=60.0, max_answer_bytes=10**6)
    return HostedKinds((kind, mcp), **limits)


@pytest.fixture(scope="module")
def server(
    kind: SearchKind, url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    path = tmp_path_factory.mktemp("store") / "chats.sqlite3"
    kinds = make_kinds(
        kind,
        url,
        max_calls=4,
        chat_entries=({"type": "mcp", "server_label": "sums", "require_approval": "never"},),
        takes_chat_entries=True,
    )
    with thinking_server(f"sqlite:///{path}", max_model_len=16384, hosted=kinds) as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(autouse=True)
def everything_is_closed(kind: SearchKind) -> Iterator[None]:
    kind.queries.clear()
    yield
    while kind.num_open:  # the server closes the tools after the client has left
        time.sleep(0.001)


def ask(http: httpx.Client, said: str, *tools: Json, **fields: object) -> dict[str, Any]:
    messages = [{"role": "user", "content": said}]
    body: Json = {"model": "parrot", "messages": messages, **fields}
    if tools:
        body["tools"] = tools
    answer = http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    whole: dict[str, Any] = answer.json()
    return whole


def read_message(whole: dict[str, Any]) -> dict[str, Any]:
    [choice] = whole["choices"]
    message: dict[str, Any] = choice["message"] | {"finish_reason": choice["finish_reason"]}
    return message


def test_a_client_without_tools_gets_the_answer_with_the_result(http: httpx.Client) -> None:
    message = read_message(ask(http, f"I add.\n{ADD}"))
    assert message["content"].startswith("I add.")
    assert "\n\n" in message["content"] and "the sum is 5" in message["content"]
    assert message["finish_reason"] == "stop" and "tool_calls" not in message


def test_the_usage_counts_all_turns(http: httpx.Client) -> None:
    alone = ask(http, "hi")["usage"]
    looped = ask(http, ADD)["usage"]
    assert looped["prompt_tokens"] > 2 * alone["prompt_tokens"]


def test_an_entry_of_the_request_is_opened(http: httpx.Client, url: str) -> None:
    entry: Json = {"type": "mcp", "server_label": "mine", "server_url": url}
    message = read_message(ask(http, write_call("mine__add", {"a": 2, "b": 3}), entry))
    assert "the sum is 5" in message["content"]


def test_a_search_has_citations(http: httpx.Client, kind: SearchKind) -> None:
    message = read_message(ask(http, search_for("otters"), SEARCH))
    assert kind.queries == ["otters"]
    [annotation] = message["annotations"]
    cited = annotation["url_citation"]
    assert (annotation["type"], cited["url"]) == ("url_citation", "https://example.org/otters")
    assert message["content"][cited["start_index"] : cited["end_index"]] == "【1】"


def test_a_stream_adds_up_to_the_whole_answer(server: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        stream = client.chat.completions.create(
            model="parrot",
            messages=[{"role": "user", "content": f"Two. {search_for('otters')}"}],
            tools=[SEARCH],  # type: ignore[list-item]  # the client has no type for it
            stream=True,
        )
        chunks = [chunk for chunk in stream if isinstance(chunk, ChatCompletionChunk)]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    with server.client() as http:
        whole = read_message(ask(http, f"Two. {search_for('otters')}", SEARCH))
    assert "".join(delta.content or "" for delta in deltas) == whole["content"]
    assert not any(delta.tool_calls for delta in deltas)
    annotations = [each for delta in deltas for each in getattr(delta, "annotations", None) or ()]
    assert annotations == whole["annotations"]


def test_a_failed_call_is_told_to_the_model(http: httpx.Client) -> None:
    assert "Error executing tool fail" in read_message(ask(http, write_call("fail", {})))["content"]


def test_calls_of_the_client_end_the_answer_before_calls_of_the_server(
    http: httpx.Client, kind: SearchKind
) -> None:
    said = f"{search_for('otters')}\n{write_call('look', {})}"
    message = read_message(ask(http, said, LOOK, SEARCH))
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["look"]
    assert message["finish_reason"] == "tool_calls" and kind.queries == []


def test_a_call_of_the_client_may_follow_calls_of_the_server(
    http: httpx.Client, kind: SearchKind
) -> None:
    kind.find = lambda query: write_call("look", {"at": query})
    try:
        message = read_message(ask(http, search_for("up"), LOOK, SEARCH))
    finally:
        kind.find = lambda query: f"found {query}"
    [call] = message["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"at": "up"}
    assert message["finish_reason"] == "tool_calls"


def test_no_more_calls_run_than_the_server_allows(http: httpx.Client, kind: SearchKind) -> None:
    said = search_for(*"abcdef")
    kind.find = lambda query: search_for("again")
    try:
        read_message(ask(http, said, SEARCH))
    finally:
        kind.find = lambda query: f"found {query}"
    assert sorted(kind.queries) == ["a", "b", "c", "d"]


def test_a_client_that_leaves_ends_the_call(server: RunningServer, kind: SearchKind) -> None:
    kind.may_end = False
    body = {
        "model": "parrot",
        "messages": [{"role": "user", "content": f"Wait. {search_for('otters')}"}],
        "tools": [SEARCH],
        "stream": True,
    }
    try:
        with (
            server.client() as http,
            http.stream("POST", "/v1/chat/completions", json=body) as answer,
        ):
            lines = answer.iter_lines()  # held: its end would close the connection
            next(lines)
            while not kind.queries:
                time.sleep(0.001)
        while kind.num_open:
            time.sleep(0.001)
    finally:
        kind.may_end = True
    assert kind.queries == ["otters"]


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "function": {"name": "add"}},
        {"type": "mcp", "server_label": "sums"},
    ],
)
def test_a_chat_may_choose_tools_of_the_operator(http: httpx.Client, choice: object) -> None:
    """The request has no tools of its own."""
    assert "the sum is 5" in read_message(ask(http, ADD, tool_choice=choice))["content"]


def test_tools_of_the_operator_stay_out_of_other_chats(http: httpx.Client) -> None:
    for fields in ({"tool_choice": "none"}, {"n": 2}, {"echo": True}):
        answer = ask(http, ADD, **fields)
        assert "the sum" not in json.dumps(answer)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"echo": True}, "echo"),
        ({"tools": [{"type": "web_search", "nonsense": 1}]}, "tools[0].nonsense"),
        (
            {"tools": [{"type": "mcp", "server_label": "sums", "require_approval": "always"}]},
            "tools[0].require_approval",
        ),
        ({"tools": [{"type": "mcp", "server_label": "no"}]}, "tools[0].server_url"),
    ],
)
def test_contradictions_are_refused(http: httpx.Client, fields: Json, param: str) -> None:
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": "parrot", "messages": messages, "tools": [SEARCH], **fields}
    answer = http.post("/v1/chat/completions", json=body)
    status, error = answer.status_code, read_error(answer)
    assert status == 400 and error["param"] == param


def test_an_unreachable_server_is_an_error_that_names_it(http: httpx.Client, url: str) -> None:
    host = url.split("/")[2]
    entry = {"type": "mcp", "server_label": "gone", "server_url": f"http://{host}/elsewhere"}
    body = {"model": "parrot", "messages": [{"role": "user", "content": "hi"}], "tools": [entry]}
    answer = http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 424 and "gone" in answer.text


def test_a_stored_chat_has_the_answer_of_all_turns(http: httpx.Client) -> None:
    whole = ask(http, ADD, store=True)
    stored = http.get(f"/v1/chat/completions/{whole['id']}").json()
    assert stored["choices"][0]["message"]["content"] == read_message(whole)["content"]


def test_without_the_option_the_entries_are_refused_with_a_hint(
    kind: SearchKind, url: str, tmp_path: Path
) -> None:
    kinds = make_kinds(kind, url)
    store_url = f"sqlite:///{tmp_path}/chats"
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": "parrot", "messages": messages, "tools": [SEARCH]}
    with thinking_server(store_url, hosted=kinds) as server, server.client() as http:
        answer = http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400 and "--chat-tools requested" in answer.text
