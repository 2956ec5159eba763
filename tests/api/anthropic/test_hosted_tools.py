"""The server runs tools in messages; the model repeats the last message that it reads."""

import time
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import pytest

from ouzel.config.media_hosts import read_media_hosts
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.mcp_kind import McpKind
from tests.api.anthropic.exchanges import (
    LOOK,
    PATH,
    Json,
    build_request,
    fold_events,
    last_prompt,
    read_error,
    read_events,
)
from tests.api.responses.searching import SearchKind
from tests.api.responses.test_hosted_loop import search_for
from tests.api.responses.test_tools import write_call
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer
from tests.hosted_tools.mcp_server import SECRET, KeyCheck, make_server, running

ADD = write_call("add", {"a": 2, "b": 3})
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(KeyCheck(make_server().streamable_http_app(), SECRET)) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module")
def kind() -> SearchKind:
    return SearchKind()


@pytest.fixture(scope="module")
def server(
    kind: SearchKind, url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    path = tmp_path_factory.mktemp("store") / "store.sqlite3"
    allowed = read_media_hosts((url.split("/")[2],), "allowed_mcp_hosts")
    mcp = McpKind({}, allowed, timeout_s=60.0, max_answer_bytes=10**6)
    with thinking_server(
        f"sqlite:///{path}",
        max_model_len=16384,
        engine_factory="create_recording_parrot",
        hosted=HostedKinds((kind, mcp), max_calls=4),
    ) as server:
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


def name_server(url: str, **fields: object) -> Json:
    token = SECRET.removeprefix("Bearer ")
    return {"type": "url", "name": "sums", "url": url, "authorization_token": token, **fields}


def ask(http: httpx.Client, said: str, **fields: object) -> Json:
    answer = http.post(PATH, json=build_request(said, **{"max_tokens": 4000, **fields}))
    assert answer.status_code == 200, answer.text
    message: Json = answer.json()
    return message


def list_kinds(message: Json) -> list[str]:
    return [block["type"] for block in message["content"]]


def test_a_tool_of_a_server_is_called_and_read(http: httpx.Client, url: str) -> None:
    message = ask(http, f"I add.\n{ADD}", mcp_servers=[name_server(url)])
    assert list_kinds(message) == ["text", "mcp_tool_use", "mcp_tool_result", "text"]
    _, use, result, text = message["content"]
    assert use["id"].startswith("mcptoolu_")
    assert (use["name"], use["server_name"], use["input"]) == ("add", "sums", {"a": 2, "b": 3})
    assert result == {
        "type": "mcp_tool_result",
        "tool_use_id": use["id"],
        "is_error": False,
        "content": [{"type": "text", "text": "the sum is 5"}],
    }
    assert "the sum is 5" in text["text"]
    assert message["stop_reason"] == "end_turn"


def test_a_stream_adds_up_to_the_whole_message(http: httpx.Client, url: str) -> None:
    fields = {"mcp_servers": [name_server(url)], "max_tokens": 4000}
    whole = ask(http, f"I add.\n{ADD}", **fields)
    body = build_request(f"I add.\n{ADD}", stream=True, **fields)
    folded = fold_events(read_events(http.post(PATH, json=body)))
    assert list_kinds(folded) == list_kinds(whole)
    assert folded["content"][1]["input"] == whole["content"][1]["input"]
    assert folded["content"][2]["content"] == whole["content"][2]["content"]
    assert folded["content"][3] == whole["content"][3]
    assert folded["stop_reason"] == whole["stop_reason"]


@pytest.mark.parametrize(
    ("toolset", "configuration", "is_called"),
    [
        (None, {"allowed_tools": ["add"]}, True),
        (None, {"allowed_tools": ["fail"]}, False),
        (None, {"enabled": False}, False),
        ({}, None, True),
        ({"default_config": {"enabled": False}}, None, False),
        ({"default_config": {"enabled": False}, "configs": {"add": {"enabled": True}}}, None, True),
        ({"configs": {"add": {"enabled": False}}}, None, False),
    ],
)
def test_a_request_chooses_the_tools_of_a_server(
    http: httpx.Client, url: str, toolset: Json | None, configuration: Json | None, is_called: bool
) -> None:
    named = name_server(url, **({"tool_configuration": configuration} if configuration else {}))
    entry = {"type": "mcp_toolset", "mcp_server_name": "sums", **(toolset or {})}
    tools = [LOOK] if toolset is None else [LOOK, entry]
    message = ask(http, ADD, mcp_servers=[named], tools=tools)
    assert ("mcp_tool_use" in list_kinds(message)) == is_called


def test_a_failed_call_is_an_error_that_the_model_reads(http: httpx.Client, url: str) -> None:
    message = ask(http, write_call("fail", {}), mcp_servers=[name_server(url)])
    _, result, text = message["content"]
    assert result["is_error"] and "Error executing tool fail" in text["text"]


def test_a_call_of_the_client_ends_the_message_after_the_calls_of_the_server(
    http: httpx.Client, url: str
) -> None:
    said = f"{ADD}\n{write_call('look', {'place': 'up'})}"
    message = ask(http, said, mcp_servers=[name_server(url)], tools=[LOOK])
    assert list_kinds(message) == ["mcp_tool_use", "tool_use", "mcp_tool_result"]
    assert message["stop_reason"] == "tool_use"
    answered = {
        "type": "tool_result",
        "tool_use_id": message["content"][1]["id"],
        "content": "a star",
    }
    messages = [
        {"role": "user", "content": said},
        {"role": "assistant", "content": message["content"]},
        {"role": "user", "content": [answered]},
    ]
    later = ask(http, "", messages=messages, mcp_servers=[name_server(url)], tools=[LOOK])
    assert "a star" in later["content"][0]["text"]
    prompt = last_prompt()
    assert prompt.index("the sum is 5") < prompt.rindex("a star")


def test_the_model_reads_a_search_and_cites_it(http: httpx.Client, kind: SearchKind) -> None:
    message = ask(http, search_for("otters"), tools=[SEARCH])
    use, result, text = message["content"]
    assert kind.queries == ["otters"]
    assert use["id"].startswith("srvtoolu_") and use["input"] == {"query": "otters"}
    assert (use["type"], use["name"]) == ("server_tool_use", "web_search")
    [page] = result["content"]
    assert result["type"] == "web_search_tool_result" and result["tool_use_id"] == use["id"]
    assert (page["type"], page["url"]) == ("web_search_result", "https://example.org/otters")
    [citation] = text["citations"]
    assert (citation["type"], citation["title"]) == ("web_search_result_location", "OTTERS")
    assert message["usage"]["server_tool_use"]["web_search_requests"] == 1


def test_a_stream_has_the_events_of_anthropic(http: httpx.Client) -> None:
    body = build_request(search_for("otters"), tools=[SEARCH], stream=True, max_tokens=4000)
    events = read_events(http.post(PATH, json=body))
    started = [
        event["content_block"]["type"] for event in events if event["type"] == "content_block_start"
    ]
    assert started == ["server_tool_use", "web_search_tool_result", "text"]
    deltas = [event["delta"]["type"] for event in events if event["type"] == "content_block_delta"]
    assert deltas[0] == "input_json_delta" and "citations_delta" in deltas
    assert events[-2]["usage"]["server_tool_use"]["web_search_requests"] == 1


def test_blocks_that_come_back_are_read_again(http: httpx.Client) -> None:
    message = ask(http, search_for("otters"), tools=[SEARCH])
    messages = [
        {"role": "user", "content": "Find otters"},
        {"role": "assistant", "content": message["content"]},
        {"role": "user", "content": "Thanks"},
    ]
    ask(http, "", messages=messages)
    prompt = last_prompt()
    assert '"name": "web_search"' in prompt and "<tool_response>" in prompt


def test_numbers_of_sources_go_on_in_the_next_message(http: httpx.Client, kind: SearchKind) -> None:
    kind.find = lambda query: "【1】 found"
    try:
        first = ask(http, search_for("otters"), tools=[SEARCH])
    finally:
        kind.find = lambda query: f"found {query}"
    messages = [
        {"role": "user", "content": "Find otters"},
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": search_for("seals")},
    ]
    second = ask(http, "", messages=messages, tools=[SEARCH])
    assert "【2】" in second["content"][-1]["text"]


def test_searches_beyond_max_uses_have_an_error(http: httpx.Client, kind: SearchKind) -> None:
    message = ask(http, search_for("a", "b"), tools=[{**SEARCH, "max_uses": 1}])
    assert kind.queries == ["a"]
    results = [block for block in message["content"] if block["type"] == "web_search_tool_result"]
    errors = [block["content"] for block in results if isinstance(block["content"], dict)]
    assert errors == [{"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}]
    assert message["usage"]["server_tool_use"]["web_search_requests"] == 1


def test_the_last_call_pauses_the_message_which_goes_on_when_it_comes_back(
    http: httpx.Client,
) -> None:
    said = search_for(*"abcd")
    message = ask(http, said, tools=[SEARCH])
    assert message["stop_reason"] == "pause_turn" and "text" not in list_kinds(message)
    messages = [
        {"role": "user", "content": said},
        {"role": "assistant", "content": message["content"]},
    ]
    later = ask(http, "", messages=messages, tools=[SEARCH])
    assert later["stop_reason"] == "end_turn" and "text" in list_kinds(later)


def test_a_client_that_leaves_ends_the_call(server: RunningServer, kind: SearchKind) -> None:
    kind.may_end = False
    body = build_request(search_for("otters"), tools=[SEARCH], stream=True, max_tokens=4000)
    try:
        with server.client() as http, http.stream("POST", PATH, json=body) as answer:
            lines = answer.iter_lines()  # held: its end would close the connection
            next(lines)
            while not kind.queries:
                time.sleep(0.001)
        while kind.num_open:
            time.sleep(0.001)
    finally:
        kind.may_end = True
    assert kind.queries == ["otters"]


def test_a_thread_holds_the_blocks_of_tools(http: httpx.Client) -> None:
    first = ask(http, search_for("otters"), tools=[SEARCH], thread={"type": "create"})
    continued = {"type": "continue", "previous_message_id": first["id"]}
    later = ask(http, "Thanks", tools=[SEARCH], thread=continued)
    assert later["content"][0]["text"] == "Thanks"


def test_tokens_are_counted_with_the_tools(http: httpx.Client, url: str) -> None:
    body: dict[str, Any] = build_request("Hi")
    alone = http.post(f"{PATH}/count_tokens", json=body).json()["input_tokens"]
    body["mcp_servers"] = [name_server(url)]
    counted = http.post(f"{PATH}/count_tokens", json=body)
    assert counted.status_code == 200, counted.text
    assert counted.json()["input_tokens"] > alone


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"mcp_servers": [{"type": "url", "name": "a b", "url": "http://x"}]},
            "mcp_servers[0].name",
        ),
        ({"mcp_servers": [{"type": "url", "name": "a"}]}, "mcp_servers[0].url"),
        (
            {"mcp_servers": [{"type": "url", "name": "a", "url": "https://example.org/mcp"}]},
            "mcp_servers[0].url",
        ),
        (
            {"tools": [{"type": "mcp_toolset", "mcp_server_name": "none"}]},
            "tools[0].mcp_server_name",
        ),
        (
            {"tools": [{**SEARCH, "allowed_domains": ["a.org"], "blocked_domains": ["b.org"]}]},
            "tools[0].blocked_domains",
        ),
        ({"tools": [SEARCH, SEARCH]}, "tools[1].type"),
    ],
)
def test_wrong_fields_are_named(http: httpx.Client, fields: Json, message: str) -> None:
    status, kind, text = read_error(http.post(PATH, json={**build_request("Hi"), **fields}))
    assert (status, kind) == (400, "invalid_request_error")
    assert text.startswith(message)


def test_an_unreachable_server_is_an_error(http: httpx.Client, url: str) -> None:
    servers = [name_server(url.replace("/mcp", "/elsewhere"))]
    answer = http.post(PATH, json=build_request("Hi", mcp_servers=servers))
    assert answer.status_code == 424 and "sums" in answer.text
