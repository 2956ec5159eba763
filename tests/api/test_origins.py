"""The server refuses requests of pages of other sites, which browsers send without a preflight."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.requests import Json, chat, read_error
from tests.api.serving import RunningServer, running_server

EVIL = "https://evil.example.org"
PAGE = "https://chat.example.org"
EXTENSION = "chrome-extension://jfgfiigpkhlkbnfnbobbkinehhfdhndo"
TEXT = {"content-type": "text/plain;charset=UTF-8"}
JSON = {"content-type": "application/json"}
KEY = {"authorization": "Bearer sk-right"}

DOORS = {
    "/v1/chat/completions": chat("Hi"),
    "/v1/completions": {"model": "parrot", "prompt": "Hi", "max_tokens": 1},
    "/v1/responses": {"model": "parrot", "input": "Hi"},
    "/v1/conversations": {},
    "/v1/messages": {
        "model": "parrot",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
    },
    "/api/chat": {
        "model": "parrot",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": False,
    },
    "/v3/chat/completions": chat("Hi"),
    "/invocations": chat("Hi"),
    "/tokenize": {"model": "parrot", "prompt": "Hi"},
}


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx.Client]:
    config = ServerConfig(api_key=("sk-right",), admin_api_key="sk-admin")
    with running_server(config=config) as server, server.client() as client:
        yield client


@pytest.fixture(scope="module")
def allowing() -> Iterator[httpx.Client]:
    config = ServerConfig(allowed_origins=(PAGE, "null"))
    with running_server(config=config) as server, server.client() as client:
        yield client


def said(response: httpx.Response) -> str:
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def post(http: httpx.Client, headers: dict[str, str], body: Json | None = None) -> httpx.Response:
    return http.post("/v1/chat/completions", headers={**TEXT, **headers}, json=body or chat("Hi"))


@pytest.mark.parametrize("path", DOORS)
def test_a_strange_pages_text_is_refused_at_every_door(http: httpx.Client, path: str) -> None:
    assert http.post(path, json=DOORS[path], headers=TEXT).status_code != 403

    response = http.post(path, json=DOORS[path], headers={**TEXT, "origin": EVIL})

    assert response.status_code == 403
    assert (
        "--allowed-origins" in response.text
        and "header Origin" in response.text
        and EVIL in response.text
    )


@pytest.mark.parametrize(
    ("path", "form"),
    [
        (
            "/v1/chat/completions",
            {"error": {"code": "origin_not_allowed", "type": "invalid_request_error"}},
        ),
        ("/v1/messages", {"type": "error", "error": {"type": "permission_error"}}),
        ("/api/chat", {"error": "a page of another origin"}),
    ],
)
def test_each_dialect_has_its_own_form_of_the_error(
    http: httpx.Client, path: str, form: Json
) -> None:
    answer = http.post(path, json=DOORS[path], headers={**TEXT, "origin": EVIL}).json()

    for key, value in form.items():
        if isinstance(value, dict):
            assert value.items() <= answer[key].items()
        else:
            assert str(answer[key]).startswith(str(value))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_every_method_that_changes_something_is_refused(http: httpx.Client, method: str) -> None:
    response = http.request(method, "/v1/responses/resp_1", headers={"origin": EVIL})

    assert (response.status_code, read_error(response)["code"]) == (403, "origin_not_allowed")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_methods_that_only_read_pass(http: httpx.Client, method: str) -> None:
    assert http.request(method, "/v1/models", headers={"origin": EVIL}).status_code < 300


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "null"},
        {"origin": "file://"},
        {"origin": ""},
        {"origin": "http://[::1"},
        {"origin": "http://127.0.0.1:notaport"},
        {"origin": "http://localhost:1"},
        {"origin": "http://127.0.0.1"},
        {"origin": EVIL, "sec-fetch-site": "cross-site"},
        {"origin": "http://127.0.0.1:1", "sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": EVIL, **JSON},
        {"origin": "null", **JSON},
        {"origin": EXTENSION},
        {"origin": EXTENSION, "content-type": "multipart/form-data; boundary=a"},
        {"origin": "app://obsidian.md", "content-type": ""},
    ],
    ids=str,
)
def test_foreign_pages_are_refused(http: httpx.Client, headers: dict[str, str]) -> None:
    response = post(http, headers)

    assert (response.status_code, read_error(response)["code"]) == (403, "origin_not_allowed")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin"},
        {"origin": PAGE, "sec-fetch-site": "same-origin"},  # a proxy has replaced Host
        {"origin": PAGE, "host": "chat.example.org"},
        {"origin": PAGE, "host": "chat.example.org:443"},
        {"origin": PAGE, "x-forwarded-host": "chat.example.org"},
        {
            "origin": "https://Chat.Example.org:8443",
            "x-forwarded-host": "inner:80, chat.example.org:8443",
        },
        {"origin": "http://localhost:3000", "host": "localhost:3000"},
        {"origin": EXTENSION, **JSON},
        {"origin": "vscode-webview://1ab", **JSON},
        {"origin": "app://obsidian.md", "content-type": "application/json; charset=utf-8"},
        {"origin": EVIL, "authorization": "Bearer none"},
    ],
    ids=str,
)
def test_own_pages_and_other_clients_pass(headers: dict[str, str]) -> None:
    with (
        running_server(config=ServerConfig(allowed_hosts=("*",))) as server,
        server.client() as http,
    ):
        assert said(post(http, headers)) == "Hi"


def test_the_servers_own_origin_passes(server: RunningServer, http: httpx.Client) -> None:
    assert said(post(http, {"origin": server.url})) == "Hi"


def test_allowed_origins_pass_and_others_do_not(allowing: httpx.Client) -> None:
    for origin in (PAGE, "null"):
        assert said(post(allowing, {"origin": origin, "sec-fetch-site": "cross-site"})) == "Hi"
    assert post(allowing, {"origin": EVIL}).status_code == 403


def test_every_request_passes_if_all_origins_are_allowed() -> None:
    config = ServerConfig(allowed_origins=("*",))
    with running_server(config=config) as server, server.client() as http:
        assert said(post(http, {"origin": EVIL, "sec-fetch-site": "cross-site"})) == "Hi"


def test_a_request_with_a_key_may_come_from_any_page(guarded: httpx.Client) -> None:
    assert said(post(guarded, {"origin": EVIL, **KEY})) == "Hi"
    assert said(post(guarded, {"origin": EVIL, "x-api-key": "sk-right"})) == "Hi"
    assert post(guarded, {"origin": EVIL}).status_code == 401
    assert post(guarded, {"origin": EVIL, "authorization": "Bearer sk-wrong"}).status_code == 401


def test_authorization_without_a_key_does_not_count(http: httpx.Client) -> None:
    """A browser sends a password by itself after a person has entered it once."""
    assert post(http, {"origin": EVIL, "authorization": "Basic eDp5"}).status_code == 403
