"""The client leaves a server that sends without an end."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from ouzel.client import base, event_stream, http_client
from ouzel.client.base import ApiFailure
from ouzel.client.event_stream import EventStream
from ouzel.client.http_client import HttpClient

LIMIT = 2**20
PIECE = b"x" * 2**16


class _Endless(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(500 if self.path == "/error" else 200)
        self.send_header(
            "Content-Type", "text/event-stream" if self.path == "/events" else "application/json"
        )
        self.end_headers()
        with suppress(ConnectionError):
            while True:
                self.wfile.write(b"data: " + PIECE if self.path == "/events" else PIECE)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for module in (base, event_stream, http_client):
        monkeypatch.setattr(module, "MAX_ANSWER_BYTES", LIMIT)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endless)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def ask(url: str, path: str) -> None:
    client = HttpClient(url)
    try:
        await client.ask("POST", path, b"{}")
    finally:
        await client.close()


async def stream(url: str, path: str) -> None:
    client = HttpClient(url)
    try:
        async with client.events(path, b"{}") as events:
            async for _ in events:
                pass
    finally:
        await client.close()


@pytest.mark.parametrize("path", ["/answer", "/error"])
def test_an_answer_without_an_end_is_given_up(path: str, url: str) -> None:
    with pytest.raises(ApiFailure, match="the server's answer is longer than 1 MiB"):
        asyncio.run(ask(url, path))


@pytest.mark.parametrize(
    "path, said", [("/error", "answer is longer"), ("/answer", "answer is longer")]
)
def test_what_comes_instead_of_a_stream_has_a_limit(path: str, said: str, url: str) -> None:
    with pytest.raises(ApiFailure, match=said):
        asyncio.run(stream(url, path))


def test_an_event_without_an_end_is_given_up(url: str) -> None:
    with pytest.raises(ApiFailure, match="the server sends an event of more than 1 MiB"):
        asyncio.run(stream(url, "/events"))


def test_a_long_stream_of_short_events_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_ANSWER_BYTES", 1000)
    events = EventStream()
    assert [
        event for _ in range(500) for event in events.feed(b"data: " + b"x" * 100 + b"\n\n")
    ] == [b"x" * 100] * 500
    assert [
        event
        for _ in range(500)
        for event in events.feed(b": a comment of a server that is alive\n\n")
    ] == []
