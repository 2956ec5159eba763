"""Most paths need an API key; a missing or wrong key is a 401."""

import socket
from collections.abc import Iterator

import httpx
import openai
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.key_checks import ApiKeyCheck
from ouzel.api.http.paths import Paths
from ouzel.api.http.request_recorder import RequestRecorder
from ouzel.config import ServerConfig
from ouzel.observability import HttpResponses
from tests.api.requests import chat, read_error
from tests.api.serving import RunningServer, running_server

FIRST, SECOND = "sk-first", "sk-second"
GUARDED = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/v3/completions"),
    ("GET", "/v1/models"),
    ("GET", "/v3/v1/models/parrot"),
    ("GET", "/metrics"),
    ("GET", "/nowhere"),
    ("PUT", "/v1/models"),
    ("OPTIONS", "/v1/chat/completions"),
    ("GET", "/health/x"),
    ("GET", "/models/"),
    ("POST", "/"),
    ("POST", "/health"),
]


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningServer]:
    with running_server(config=ServerConfig(api_key=(FIRST, SECOND))) as server:
        yield server


@pytest.fixture(scope="module")
def http(guarded: RunningServer) -> Iterator[httpx.Client]:
    with guarded.client() as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    "headers",
    [{}, bearer("sk-wrong"), {"authorization": "Bearer"}, bearer(FIRST + "x"), bearer(FIRST[:-1])],
)
@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_without_a_key_every_path_is_a_401(
    http: httpx.Client, method: str, path: str, headers: dict[str, str]
) -> None:
    response = http.request(method, path, headers={**headers, "x-request-id": "abc"})

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.headers["x-request-id"] == "abc"
    error = read_error(response)
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
    assert "sk-" not in error["message"]


def test_a_wrong_key_is_told_in_words_by_which_litellm_knows_it(http: httpx.Client) -> None:
    """LiteLLM, as aider pins it, treats a 401 with another message as a bad request."""
    error = read_error(http.get("/v1/models", headers=bearer("sk-wrong")))

    assert "Incorrect API key provided" in error["message"]


@pytest.mark.parametrize(
    "headers",
    [
        bearer(FIRST),
        bearer(SECOND),
        {"authorization": f"bearer  {FIRST}"},
        {"x-api-key": SECOND},
        {"api-key": FIRST},
        {"authorization": "Basic eDp5", "x-api-key": FIRST},
    ],
)
def test_any_of_the_keys_opens(http: httpx.Client, headers: dict[str, str]) -> None:
    assert http.get("/v1/models", headers=headers).status_code == 200
    assert http.get("/metrics", headers=headers).status_code == 200
    assert http.get("/nowhere", headers=headers).status_code == 404


@pytest.mark.parametrize(
    "headers", [{"authorization": FIRST}, {"authorization": f"Basic {FIRST}"}, {"cookie": FIRST}]
)
def test_a_key_in_another_place_does_not_count(http: httpx.Client, headers: dict[str, str]) -> None:
    assert http.get("/v1/models", headers=headers).status_code == 401


def test_bytes_beyond_ascii_are_a_wrong_key(http: httpx.Client) -> None:
    assert (
        http.get("/v1/models", headers={b"authorization": b"Bearer \xff\xc3\xa9"}).status_code
        == 401
    )


def test_health_needs_no_key(http: httpx.Client) -> None:
    assert http.get("/health").status_code == 200
    assert http.head("/health").status_code == 200


def test_a_stream_without_a_key_is_a_plain_401(http: httpx.Client) -> None:
    response = http.post("/v1/chat/completions", json=chat("Hi", stream=True))

    assert response.status_code == 401
    assert response.headers["content-type"] == "application/json"


def test_the_401_does_not_wait_for_the_body(guarded: RunningServer) -> None:
    with socket.create_connection(("127.0.0.1", guarded.port)) as connection:
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n"
        )

        assert connection.recv(65536).startswith(b"HTTP/1.1 401")


def test_the_openai_client_tells_a_wrong_key_from_a_right_one(guarded: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{guarded.url}/v1", api_key="sk-wrong", max_retries=0) as wrong:
        with pytest.raises(openai.AuthenticationError) as refused:
            wrong.chat.completions.create(
                model="parrot", messages=[{"role": "user", "content": "Hi"}]
            )
        with pytest.raises(openai.AuthenticationError):
            wrong.chat.completions.create(
                model="parrot", messages=[{"role": "user", "content": "Hi"}], stream=True
            )
    assert refused.value.code == "invalid_api_key"

    with openai.OpenAI(base_url=f"{guarded.url}/v1", api_key=SECOND) as right:
        answer = right.chat.completions.create(
            model="parrot", messages=[{"role": "user", "content": "Hi"}]
        )
    assert answer.choices[0].message.content == "Hi"


async def test_the_app_knows_the_key_by_an_opaque_name() -> None:
    async def tell_key_id(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(get_exchange(scope).key_id)(scope, receive, send)

    transport = httpx.ASGITransport(
        RequestRecorder(ApiKeyCheck(tell_key_id, (FIRST, SECOND)), Paths(()), HttpResponses().count)
    )
    async with httpx.AsyncClient(transport=transport, base_url="http://door") as behind:
        first, second, again = [
            (await behind.get("/x", headers=bearer(key))).text for key in (FIRST, SECOND, FIRST)
        ]

    assert first == again != second
    assert len(first) == 32
    assert FIRST not in first
