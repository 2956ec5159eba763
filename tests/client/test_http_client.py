"""`HttpClient` finds servers, sends requests, and explains answers that fail."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme

from ouzel.client.base import Answer, ApiFailure, read_failure
from ouzel.client.http_client import HttpClient, read_address, tls_context
from tests.api.serving import running_server
from tests.client.canned_server import canned_server, event_stream, json_answer

CHAT = b'{"messages": [{"role": "user", "content": "abc"}], "stream": true}'
PATH = "/v1/chat/completions"


@asynccontextmanager
async def open_client(
    url: str, *, api_key: str = "", tls: ssl.SSLContext | None = None
) -> AsyncGenerator[HttpClient, None]:
    client = HttpClient(url, api_key=api_key, tls=tls)
    try:
        yield client
    finally:
        await client.close()


async def read_events(client: HttpClient) -> list[bytes]:
    async with client.events(PATH, CHAT) as events:
        return [event async for event in events]


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000"),
        ("http://localhost:8000/v1/", "http://localhost:8000"),
        ("https://models.example/openai/v1", "https://models.example/openai"),
        ("https://models.example/openai/", "https://models.example/openai"),
        ("http://localhost:8000/v1/chat/completions", "http://localhost:8000"),
        ("https://models.example/v1/account/v1/responses/", "https://models.example/v1/account"),
        ("localhost:8000", "http://localhost:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_a_url_may_end_with_the_version_or_not(url: str, root: str) -> None:
    assert read_address(url).root == root


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://localhost",
        "http://",
        "http://a:b",
        "http://[",
        "unix:",
        "http://a/?b",
        "http://a\nb/",
    ],
)
def test_what_is_no_url_is_refused_with_the_value(url: str) -> None:
    with pytest.raises(ApiFailure, match=r"must be .* given"):
        read_address(url)


@pytest.mark.parametrize(
    "url", ["http://a:b@localhost:1/v1", "a:b@localhost:1", "http://a:b@c@localhost:1/"]
)
def test_a_password_is_shown_nowhere(url: str) -> None:
    assert HttpClient(url).root == "http://…@localhost:1"
    with pytest.raises(ApiFailure, match=r"given '(http://)?…@localhost:1") as failure:
        read_address(f"{url}?query")
    assert "b" not in str(failure.value).partition("given")[2]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "[::1]", "a.localhost"])
def test_this_machine_is_known(host: str) -> None:
    assert read_address(f"http://{host}:1").is_loopback
    assert not read_address("http://10.0.0.1").is_loopback


async def test_whole_answers_and_events_come_from_a_server() -> None:
    with running_server() as server:
        async with open_client(server.url) as client:
            models = await client.ask("GET", "/v1/models")
            chunks = [json.loads(event) for event in await read_events(client)]
    assert (models.status, json.loads(models.body)["object"]) == (200, "list")
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == "abc"


async def test_leaving_ends_the_request() -> None:
    forever = b'{"prompt": "abc", "max_tokens": 19000, "stream": true}'
    with running_server() as server:
        async with (
            open_client(server.url) as client,
            client.events("/v1/completions", forever) as events,
        ):
            await anext(events)
        while (stats := server.engine.stats()) is None or stats.num_running:
            await asyncio.sleep(0.01)


async def test_a_refusal_is_said_in_the_servers_words() -> None:
    with running_server() as server:
        async with open_client(server.url) as client:
            with pytest.raises(ApiFailure, match="400: max_tokens") as failure:
                async with client.events(
                    PATH, b'{"messages": [], "stream": true, "max_tokens": -7}'
                ):
                    pass
    assert failure.value.http_status == 400


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (429, b'{"error": {"message": "slowly"}}', "429: slowly"),
        (422, b'{"detail": [{"loc": "x"}]}', '422: {"detail": [{"loc": "x"}]}'),
        (502, b"<html>\n", "502: <html>"),
        (400, b'{"error": "\xe9"}', '400: {"error": "\N{REPLACEMENT CHARACTER}"}'),
        (301, b"", "301: Moved Permanently"),
        (520, b" ", "520: no reason was given"),
    ],
)
def test_what_is_said_of_a_refusal(status: int, body: bytes, said: str) -> None:
    assert str(read_failure(Answer(status, body))) == said


async def test_requests_that_go_on_have_connections_of_their_own_which_are_kept() -> None:
    connections: list[asyncio.StreamWriter] = []
    both_have_come = asyncio.Barrier(2)

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        with suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                if b"/together" in head:
                    await both_have_come.wait()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    async with (
        server,
        open_client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client,
    ):
        await asyncio.gather(client.ask("GET", "/together"), client.ask("GET", "/together"))
        for _ in range(3):
            await client.ask("GET", "/alone")
    for (
        writer
    ) in connections:  # else the loop may end before the server has seen that the client is gone
        await writer.wait_closed()
    assert len(connections) == 2


async def test_a_server_that_is_not_there_is_named() -> None:
    async with open_client("http://127.0.0.1:1") as client:
        with pytest.raises(ApiFailure, match=r"http://127.0.0.1:1: the server cannot be reached"):
            await client.ask("GET", "/v1/models")


async def test_an_answer_that_breaks_off_is_a_failure() -> None:
    async with (
        canned_server(event_stream("one", "two")[:-5]) as server,
        open_client(server.url) as client,
    ):
        with pytest.raises(ApiFailure, match="broke off"):
            await read_events(client)


async def test_a_stream_whose_end_does_not_follow_its_last_event_is_over_all_the_same() -> None:
    """The server holds the connection open until the client closes it."""
    is_left = asyncio.Event()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(event_stream("one", "[DONE]").removesuffix(b"0\r\n\r\n"))
        await reader.read()  # the body of the request, and then nothing
        is_left.set()
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    async with (
        server,
        open_client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client,
    ):
        assert await read_events(client) == [b"one"]
        await is_left.wait()


@pytest.mark.parametrize(
    ("body", "said"),
    [("{}", "one JSON object"), ('{"error": {"message": "no model"}}', "^200: no model$")],
)
async def test_one_json_object_is_no_stream(body: str, said: str) -> None:
    async with (
        canned_server(json_answer("200 OK", body)) as server,
        open_client(server.url) as client,
    ):
        with pytest.raises(ApiFailure, match=said):
            await read_events(client)


async def test_the_key_is_sent_and_proxies_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with (
        canned_server(event_stream("one")) as server,
        open_client(server.url, api_key="sesame") as client,
    ):
        assert await read_events(client) == [b"one"]
    assert "authorization: bearer sesame" in server.heads[0]
    assert server.bodies == [CHAT]


def test_a_proxy_that_cannot_be_used_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "nothing://127.0.0.1:1")
    with pytest.raises(ApiFailure, match="the proxy that the environment names cannot be used"):
        HttpClient("http://models.example")


async def test_a_redirection_is_not_followed_but_told() -> None:
    answer = (
        b"HTTP/1.1 301 Moved\r\nlocation: https://models.example/v1\r\ncontent-length: 0\r\n\r\n"
    )
    async with canned_server(answer) as server, open_client(server.url) as client:
        with pytest.raises(
            ApiFailure, match=r"301: the server redirects to https://models\.example/v1"
        ):
            await client.ask("GET", "/v1/models")
        with pytest.raises(ApiFailure, match="301"):
            await read_events(client)


def test_a_key_that_no_header_can_hold_is_refused() -> None:
    with pytest.raises(ApiFailure, match="API key must be printable ASCII"):
        HttpClient("localhost:1", api_key="a\nb")


async def test_a_unix_socket_leads_to_a_server(tmp_path: Path) -> None:
    answer = event_stream("one", "[DONE]")
    async with (
        canned_server(answer, unix_socket=tmp_path / "socket") as server,
        open_client(server.url) as client,
    ):
        assert await read_events(client) == [b"one"]


async def test_the_authorities_of_a_file_are_trusted_and_no_others(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with canned_server(event_stream("one"), tls=context) as server:
        for tls in (tls_context(ca_file=str(tmp_path / "ca.pem")), tls_context(verifies=False)):
            async with open_client(server.url, tls=tls) as client:
                assert await read_events(client) == [b"one"]
        async with open_client(server.url) as client:
            with pytest.raises(ApiFailure, match="certificate"):
                await read_events(client)


def test_a_file_without_certificates_is_named(tmp_path: Path) -> None:
    with pytest.raises(ApiFailure, match=r"nothing\.pem"):
        tls_context(ca_file=str(tmp_path / "nothing.pem"))
