"""The server answers browsers' questions about pages of other origins (CORS)."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.requests import chat, read_events
from tests.api.serving import running_server

PAGE = "https://chat.example.org"
OTHER = "https://evil.example.org"
PREFLIGHT = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
}


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    """Yields a client of a server with an API key, and with one allowed origin beside "null"."""
    config = ServerConfig(allowed_origins=(PAGE, "null"), api_key=("sk-right",))
    with running_server(config=config) as server, server.client() as client:
        yield client


def cors_headers(response: httpx.Response) -> set[str]:
    return {name for name in response.headers if name.startswith("access-control-")}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models", "/health", "/nowhere"])
def test_a_preflight_needs_no_key(http: httpx.Client, path: str) -> None:
    response = http.options(path, headers={"origin": PAGE, "x-request-id": "abc", **PREFLIGHT})

    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == PAGE
    assert "POST" in response.headers["access-control-allow-methods"]
    assert response.headers["access-control-allow-headers"] == "authorization,content-type"
    assert response.headers["access-control-max-age"] == "600"
    assert "Origin" in response.headers["vary"]
    assert response.headers["x-request-id"] == "abc"
    assert "access-control-allow-credentials" not in response.headers


def test_the_preflight_of_a_strange_page_is_refused(http: httpx.Client) -> None:
    response = http.options("/v1/models", headers={"origin": OTHER, **PREFLIGHT})

    assert response.status_code == 400
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    ("method", "path", "key", "status"),
    [
        ("GET", "/v1/models", "sk-right", 200),
        ("GET", "/v1/models", "sk-wrong", 401),
        ("GET", "/nowhere", "sk-right", 404),
        ("PUT", "/v1/models", "sk-right", 405),
        ("POST", "/v1/chat/completions", "sk-right", 400),
        ("GET", "/health", "", 200),
        ("GET", "/metrics", "sk-right", 200),
    ],
)
def test_the_page_may_read_every_answer(
    http: httpx.Client, method: str, path: str, key: str, status: int
) -> None:
    response = http.request(method, path, headers={"origin": PAGE, "x-api-key": key})

    assert response.status_code == status
    assert response.headers["access-control-allow-origin"] == PAGE
    assert response.headers["vary"] == "Origin"
    assert "x-request-id" in response.headers["access-control-expose-headers"]


@pytest.mark.parametrize(("said", "last"), [("Hi", "[DONE]"), ("ab<|fail|>", "error")])
def test_the_page_may_read_a_stream(http: httpx.Client, said: str, last: str) -> None:
    headers = {"origin": PAGE, "x-api-key": "sk-right", "x-request-id": "abc"}
    response = http.post("/v1/chat/completions", json=chat(said, stream=True), headers=headers)

    assert response.headers["access-control-allow-origin"] == PAGE
    assert response.headers["x-request-id"] == "abc"
    assert last in read_events(response)[-1]


def test_a_strange_page_may_not_read_the_answer(http: httpx.Client) -> None:
    response = http.get("/v1/models", headers={"origin": OTHER, "x-api-key": "sk-right"})

    assert response.status_code == 200
    assert "access-control-allow-origin" not in response.headers
    assert response.headers["vary"] == "Origin"


def test_answers_to_nobody_in_particular_vary_too(http: httpx.Client) -> None:
    assert http.get("/health").headers["vary"] == "Origin"


def test_without_the_option_there_are_no_headers() -> None:
    with running_server() as server, server.client() as http:
        assert cors_headers(http.get("/v1/models", headers={"origin": PAGE})) == set()
        preflight = http.options("/v1/models", headers={"origin": PAGE, **PREFLIGHT})

    assert (preflight.status_code, preflight.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    assert cors_headers(preflight) == set()


def test_methods_and_headers_may_be_limited() -> None:
    config = ServerConfig(
        allowed_origins=("*",), allowed_methods=("GET",), allowed_headers=("X-Api-Key",)
    )
    with running_server(config=config) as server, server.client() as http:

        def preflight(method: str, header: str) -> httpx.Response:
            asked = {
                "access-control-request-method": method,
                "access-control-request-headers": header,
            }
            return http.options("/v1/models", headers={"origin": PAGE, **asked})

        granted = preflight("GET", "x-api-key")
        assert granted.status_code == 200
        assert granted.headers["access-control-allow-origin"] == "*"
        assert granted.headers["access-control-allow-methods"] == "GET"
        assert preflight("POST", "x-api-key").status_code == 400
        assert preflight("GET", "authorization").status_code == 400


@pytest.mark.parametrize("cookie", [{}, {"cookie": "a=b"}])
def test_all_origins_with_credentials_are_named_one_by_one(cookie: dict[str, str]) -> None:
    """Browsers do not accept `*` for requests with credentials."""
    config = ServerConfig(allowed_origins=("*",), allow_credentials=True)
    with running_server(config=config) as server, server.client() as http:
        preflight = http.options("/v1/models", headers={"origin": OTHER, **PREFLIGHT})
        actual = http.get("/v1/models", headers={"origin": OTHER, **cookie})

    for response in (preflight, actual):
        assert response.headers["access-control-allow-origin"] == OTHER
        assert response.headers["access-control-allow-credentials"] == "true"
        assert "Origin" in response.headers["vary"]
