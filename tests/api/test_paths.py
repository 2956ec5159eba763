"""The endpoint itself answers a misspelt path if it is clear, and else a hint."""

import socket
from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.requests import chat, join_content, read_error, read_events
from tests.api.server_setup import ALIAS, MODEL
from tests.api.serving import RunningServer, running_server

ENDPOINTS = (
    "this server has no such endpoint; it has /v1/chat/completions, /v1/completions, /v1/responses"
)


@pytest.fixture(scope="module")
def behind_proxy() -> Iterator[httpx.Client]:
    config = ServerConfig(root_path="/llm", api_key=("sk-right",))
    with running_server(config=config) as server, server.client() as http:
        http.headers["authorization"] = "Bearer sk-right"
        yield http


def build_url(http: httpx.Client, path: str) -> str:
    """Returns the whole URL of a path: httpx would read a relative `//v1` as a host."""
    return f"{str(http.base_url).rstrip('/')}{path}"


@pytest.mark.parametrize(
    "path",
    [
        "/chat/completions",
        "/v1/chat/completions/",
        "/chat/completions/",
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/v3/chat/completions/",
    ],
)
def test_a_chat_is_answered_wherever_it_is_plain(http: httpx.Client, path: str) -> None:
    url = build_url(http, path)
    assert http.post(url, json=chat("Hi")).json()["choices"][0]["message"]["content"] == "Hi"
    assert join_content(read_events(http.post(url, json=chat("Hi", stream=True)))) == "Hi"


@pytest.mark.parametrize("path", ["/models", "/v1/models/", "//models", "/models/"])
def test_models_are_listed_wherever_it_is_plain(http: httpx.Client, path: str) -> None:
    assert [model["id"] for model in http.get(build_url(http, path)).json()["data"]] == [
        MODEL,
        ALIAS,
    ]


def test_ids_may_have_slashes_anywhere(http: httpx.Client) -> None:
    assert http.get(f"/models/{MODEL}/").json()["id"] == MODEL


@pytest.mark.parametrize(
    "path", ["/v1/health", "/health/", "/v1/metrics", "/v3/health", "/v1/ping"]
)
def test_paths_at_the_root_also_exist_below_v1(http: httpx.Client, path: str) -> None:
    assert http.get(path).status_code == 200


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/v1/models", "/v1/models"),
        ("/v1/chat/completions/chat/completions", "/v1/chat/completions"),
        ("/openai/deployments/gpt/chat/completions", "/v1/chat/completions"),
        ("/v2/chat/completions", "/v1/chat/completions"),
        ("/V1/Chat/Completions", "/v1/chat/completions"),
        ("/v1/chat/completion", "/v1/chat/completions"),
        ("/v1/response", "/v1/responses"),
    ],
)
def test_an_almost_right_path_is_told_the_right_one(
    http: httpx.Client, path: str, meant: str
) -> None:
    response = http.post(path, json=chat("Hi"))
    assert response.status_code == 404
    error = read_error(response)
    assert error["message"] == f"unknown URL: POST {path}; did you mean {meant}?"
    assert (error["type"], error["code"]) == ("invalid_request_error", "unknown_url")


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [
        ("GET", "/v1/v1/responses/resp_1", "/v1/responses/{response_id}"),
        ("GET", "/openai/models/org/other", "/v1/models/{name}"),
        ("DELETE", "/x/responses/health", "/v1/responses/{response_id}"),
    ],
)
def test_a_hint_names_no_object_that_may_not_exist(
    http: httpx.Client, method: str, path: str, meant: str
) -> None:
    error = read_error(http.request(method, path))
    assert error["message"] == f"unknown URL: {method} {path}; did you mean {meant}?"


def test_a_hint_with_an_id_is_for_the_method_of_the_request(http: httpx.Client) -> None:
    message = read_error(http.post("/x/responses/resp_1", json={}))["message"]
    assert message.startswith(f"unknown URL: POST /x/responses/resp_1; {ENDPOINTS}")


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/chat",
        "/v1/images/generations",
        "/v1/images/edits",
        "/v1/moderations",
        "/v1/fine_tuning/jobs",
        "/v1/evals",
        "/nope/" + "x" * 5000,
    ],
)
def test_an_unknown_path_is_told_the_known_ones(http: httpx.Client, path: str) -> None:
    response = http.post(path, json={"input": "a", "model": ALIAS})
    assert response.status_code == 404
    message = read_error(response)["message"]
    assert message.startswith(f"unknown URL: POST {path[:200]}; {ENDPOINTS}")
    assert len(message) < 500


def test_a_proxy_may_keep_its_prefix_or_take_it_off(behind_proxy: httpx.Client) -> None:
    for path in ("/llm/v1/chat/completions", "/v1/chat/completions", "/llm/chat/completions/"):
        assert (
            behind_proxy.post(path, json=chat("Hi")).json()["choices"][0]["message"]["content"]
            == "Hi"
        )
    assert behind_proxy.get("/llm/openapi.json").json()["servers"] == [{"url": "/llm"}]
    missed = behind_proxy.get("/llm/v1/v1/models")
    assert (
        read_error(missed)["message"]
        == "unknown URL: GET /v1/v1/models; did you mean /llm/v1/models?"
    )
    assert behind_proxy.get("/llmv1/models").status_code == 404


def test_behind_a_prefix_the_same_paths_are_open(behind_proxy: httpx.Client) -> None:
    without_key = {"authorization": ""}
    assert behind_proxy.get("/llm/health", headers=without_key).status_code == 200
    assert behind_proxy.get("/llm/v1/models", headers=without_key).status_code == 401


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/chat/completions", "GET, HEAD, OPTIONS, POST"),
        ("/chat/completions/", "GET, HEAD, OPTIONS, POST"),
        ("/v1/chat/completions/chatcmpl-1", "DELETE, GET, HEAD, OPTIONS, POST"),
        ("/v1/chat/completions/render", "OPTIONS, POST"),
        ("/v1/models", "GET, HEAD, OPTIONS"),
        ("/v1/responses", "OPTIONS, POST"),
        ("/v1/responses/resp_1", "DELETE, GET, HEAD, OPTIONS"),
        ("/v1/conversations/conv_1", "DELETE, GET, HEAD, OPTIONS, POST"),
        ("/health", "GET, HEAD, OPTIONS"),
        ("/v1/responses/compact", "OPTIONS, POST"),
        ("/v1/responses/input_tokens", "OPTIONS, POST"),
    ],
)
def test_all_methods_of_a_path_are_named(http: httpx.Client, path: str, allowed: str) -> None:
    options = http.options(path)
    assert (options.status_code, options.headers["allow"], options.content) == (204, allowed, b"")
    wrong = http.request("PATCH", path)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, allowed)
    assert read_error(wrong)["message"].endswith(f"; allowed: {allowed}")


def test_options_of_an_unknown_path_is_a_404(http: httpx.Client) -> None:
    assert http.options("/v1/moderations").status_code == 404


def test_options_may_ask_for_the_whole_server(server: RunningServer) -> None:
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as connection:
        connection.sendall(b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 204 ")
    assert b"\r\nallow: GET, HEAD, OPTIONS, POST\r\n" in answer


def test_head_is_answered_where_get_is(http: httpx.Client) -> None:
    got, head = http.get("/v1/models"), http.head("/v1/models")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
