"""The server fetches pages in messages; the model repeats the last message that it reads."""

from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import pytest

from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.web_search.pages import Pages
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.web_fetch import FETCH
from ouzel.responses.hosted.web_fetch_kind import WebFetchKind
from tests.api.anthropic.exchanges import (
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
from tests.hosted_tools.web_servers import Web, running_web

TOOL: Json = {"type": "web_fetch_20250910", "name": "web_fetch"}
CITED: Json = {**TOOL, "citations": {"enabled": True}}
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search"}


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with running_web() as web:
        web.add("/plain", "Otters swim. See http://127.0.0.1:1/linked for more.", "text/plain")
        web.add("/long", "o" * 100_000, "text/plain")
        web.add("/picture", b"\x89PNG", "image/png")
        web.add("/robots.txt", "User-agent: *\nDisallow: /private", "text/plain")
        web.add("/private", "Nobody may read this.", "text/plain")
        web.add("/gone", "", "text/plain", 410)
        yield web


@pytest.fixture(scope="module")
def kind() -> SearchKind:
    return SearchKind()


@pytest.fixture(scope="module")
def http(
    web: Web, kind: SearchKind, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    pages = Pages(read_media_hosts((f"127.0.0.1:{web.port}",)), timeout_s=60.0)
    path = tmp_path_factory.mktemp("store") / "store.sqlite3"
    kinds = HostedKinds((kind,), message_kinds=(WebFetchKind(pages),), max_calls=4)
    with (
        thinking_server(
            f"sqlite:///{path}",
            max_model_len=65536,
            engine_factory="create_recording_parrot",
            hosted=kinds,
        ) as server,
        server.client() as client,
    ):
        yield client
    pages.close()


def fetch(url: str) -> str:
    return write_call(FETCH, {"url": url})


def fetch_without_naming(url: str) -> str:
    """Writes a call whose text does not name the address: JSON may escape slashes."""
    return fetch(url).replace("://", ":\\/\\/")


def ask(http: httpx.Client, said: str | list[Json], *tools: Json, **fields: object) -> Json:
    body = build_request("", max_tokens=4000, tools=list(tools or (TOOL,)), **fields)
    messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
    answer = http.post(PATH, json={**body, "messages": messages})
    assert answer.status_code == 200, answer.text
    message: Json = answer.json()
    return message


def find_results(message: Json) -> list[Any]:
    """Returns the contents of the results of fetches."""
    blocks = message["content"]
    return [block["content"] for block in blocks if block["type"] == "web_fetch_tool_result"]


def test_a_page_that_the_user_names_is_fetched(http: httpx.Client, web: Web) -> None:
    url = web.url("/plain")
    message = ask(http, fetch(url))
    use, result, text = message["content"]
    assert (use["type"], use["name"], use["input"]) == (
        "server_tool_use",
        "web_fetch",
        {"url": url},
    )
    assert use["id"].startswith("srvtoolu_")
    assert (result["type"], result["tool_use_id"]) == ("web_fetch_tool_result", use["id"])
    content = result["content"]
    assert content["type"] == "web_fetch_result" and content["url"] == url
    assert content["retrieved_at"].endswith("+00:00")
    assert content["content"] == {
        "type": "document",
        "source": {
            "type": "text",
            "media_type": "text/plain",
            "data": "Otters swim. See http://127.0.0.1:1/linked for more.",
        },
        "title": url,
        "citations": None,
    }
    assert "Otters swim." in text["text"] and "citations" not in text
    used = message["usage"]["server_tool_use"]
    assert used == {"web_search_requests": 0, "web_fetch_requests": 1}


def test_a_stream_adds_up_to_the_whole_message(http: httpx.Client, web: Web) -> None:
    said = fetch(web.url("/plain"))
    whole = ask(http, said)
    body = build_request(said, max_tokens=4000, tools=[TOOL], stream=True)
    folded = fold_events(read_events(http.post(PATH, json=body)))
    assert [block["type"] for block in folded["content"]] == [
        "server_tool_use",
        "web_fetch_tool_result",
        "text",
    ]
    assert folded["content"][1]["content"]["content"] == whole["content"][1]["content"]["content"]
    assert folded["content"][2] == whole["content"][2]


def test_citations_name_the_page(http: httpx.Client, web: Web) -> None:
    message = ask(http, fetch(web.url("/otters")), CITED)
    [content] = find_results(message)
    assert content["content"]["citations"] == {"enabled": True}
    assert content["content"]["title"] == "Otters"
    *_, citation = message["content"][-1]["citations"]
    assert (citation["url"], citation["title"]) == (web.url("/otters"), "Otters")
    assert "# Otters" in citation["cited_text"]


def test_blocks_that_come_back_are_read_again(http: httpx.Client, web: Web) -> None:
    said = fetch(web.url("/otters"))
    first = ask(http, said, CITED)
    read_first = last_prompt()
    turns = [{"role": "user", "content": said}, {"role": "assistant", "content": first["content"]}]
    ask(http, [*turns, {"role": "user", "content": "Thanks"}], CITED)
    assert last_prompt().startswith(read_first.rpartition("<|im_start|>assistant")[0])


def test_an_address_that_nobody_named_is_not_fetched(http: httpx.Client, web: Web) -> None:
    num_requests = len(web.requests)
    said = f"{web.url('/plain')} {fetch_without_naming(web.url('/otters?key=secret'))}"
    [content] = find_results(ask(http, said))
    assert content == {
        "type": "web_fetch_tool_result_error",
        "error_code": "url_not_in_prior_context",
    }
    assert len(web.requests) == num_requests


def test_results_of_the_clients_tools_name_addresses(http: httpx.Client, web: Web) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    url = web.url("/plain")
    messages: list[Json] = [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": [call]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": f"See ({url})."},
                {"type": "text", "text": fetch_without_naming(url)},
            ],
        },
    ]
    look = {"name": "look", "input_schema": {"type": "object"}}
    assert find_results(ask(http, messages, TOOL, look))[0]["url"] == url


def test_a_search_of_the_same_answer_names_addresses(http: httpx.Client, kind: SearchKind) -> None:
    url = "https://example.org/otters"  # the result of the search, on a host that is not allowed
    kind.find = lambda query: fetch_without_naming(url)
    message = ask(http, search_for("otters"), TOOL, SEARCH)
    [content, *_] = find_results(message)
    assert content["error_code"] == "url_not_allowed"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/picture", "unsupported_content_type"),
        ("/private", "url_not_allowed"),
        ("/gone", "url_not_accessible"),
        ("/" + "x" * 250, "url_too_long"),
    ],
)
def test_a_page_that_cannot_be_read_has_an_error(
    http: httpx.Client, web: Web, path: str, code: str
) -> None:
    [content] = find_results(ask(http, fetch(web.url(path))))
    assert content["error_code"] == code


def test_a_host_that_the_operator_does_not_allow_is_not_reached(http: httpx.Client) -> None:
    [content] = find_results(ask(http, fetch("http://169.254.169.254/latest/meta-data")))
    assert content["error_code"] == "url_not_allowed"


def test_the_domains_of_a_request_hold(http: httpx.Client, web: Web) -> None:
    tool = {**TOOL, "allowed_domains": ["example.org"]}
    [content] = find_results(ask(http, fetch(web.url("/plain")), tool))
    assert content["error_code"] == "url_not_allowed"


def test_a_page_has_at_most_the_tokens_of_the_request(http: httpx.Client, web: Web) -> None:
    [content] = find_results(ask(http, fetch(web.url("/long")), {**TOOL, "max_content_tokens": 10}))
    assert content["content"]["source"]["data"] == "o" * 40


def test_fetches_beyond_max_uses_have_an_error(http: httpx.Client, web: Web) -> None:
    said = fetch(web.url("/plain")) + fetch(web.url("/otters"))
    refused, fetched, *_ = find_results(ask(http, said, {**TOOL, "max_uses": 1}))
    assert refused["error_code"] == "max_uses_exceeded"
    assert fetched["url"] == web.url("/plain")


@pytest.mark.parametrize("type", ["web_fetch_20260209", "web_fetch_20260309", "web_fetch_20260318"])
def test_later_dates_are_taken(http: httpx.Client, web: Web, type: str) -> None:
    tool = {**TOOL, "type": type, "use_cache": False, "allowed_callers": ["direct"]}
    assert find_results(ask(http, fetch(web.url("/plain")), tool))[0]["url"] == web.url("/plain")


@pytest.mark.parametrize("type", ["web_search_20260209", "web_search_20260318"])
def test_later_dates_of_searches_are_taken(http: httpx.Client, kind: SearchKind, type: str) -> None:
    kind.find = lambda query: f"found {query}"
    message = ask(http, search_for("otters"), {**SEARCH, "type": type})
    assert message["content"][1]["type"] == "web_search_tool_result"


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        (
            [{**TOOL, "type": "web_fetch_20990101"}],
            'tools[0].type must be one of "web_fetch_20250910", "web_fetch_20260209", '
            '"web_fetch_20260309", "web_fetch_20260318", given "web_fetch_20990101"',
        ),
        ([{**SEARCH, "type": "web_search_20990101"}], 'given "web_search_20990101"'),
        ([TOOL, TOOL], "tools[1].type must be the only web_fetch"),
        ([{**TOOL, "max_content_tokens": 0}], "tools[0].max_content_tokens"),
        ([{**TOOL, "url_sources": {}}], "tools[0].url_sources must be null"),
        (
            [{**TOOL, "allowed_domains": ["a.org"], "blocked_domains": ["b.org"]}],
            "tools[0].blocked_domains must not be given beside allowed_domains",
        ),
        ([{**TOOL, "allowed_domains": ["a b"]}], "tools[0].allowed_domains[0] must be a domain"),
        (
            [{**TOOL, "allowed_callers": ["code_execution_20250825"]}],
            'tools[0].allowed_callers must have "direct"',
        ),
    ],
)
def test_wrong_fields_are_named(http: httpx.Client, tools: list[Json], message: str) -> None:
    status, _, text = read_error(http.post(PATH, json=build_request("hi", tools=tools)))
    assert status == 400
    assert message in text


def test_responses_have_no_such_tool(http: httpx.Client) -> None:
    answer = http.post("/v1/responses", json={"input": "hi", "tools": [{"type": FETCH}]})
    assert answer.status_code == 400
