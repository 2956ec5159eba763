"""Many connections at once: who waits makes way by turns, and who trickles costs little."""

import asyncio
import logging
import socket
from contextlib import ExitStack
from typing import Any  # ASGI messages hold anything

import pytest

from ouzel.api.http import acceptor
from ouzel.api.http.connections import Connections, Wait
from ouzel.api.http.http_server import HttpServer
from ouzel.config import LimitsConfig
from tests.api.serving import running_server

GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
UNFINISHED = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


def ask(connection: socket.socket) -> None:
    connection.sendall(GET)
    answer = b""
    while not answer.endswith(b'{"status":"ok"}'):
        piece = connection.recv(2**16)
        assert piece, "the server has closed the connection"
        answer += piece


def test_a_flood_of_unfinished_bodies_displaces_itself() -> None:
    with running_server(limits=LimitsConfig(max_connections=8)) as server, ExitStack() as stack:
        idle = stack.enter_context(connected(server.port))
        for _ in range(2):
            ask(idle)
            flood = [stack.enter_context(connected(server.port)) for _ in range(100)]
            for connection in flood:
                connection.sendall(UNFINISHED)
            assert flood[0].recv(1) == b"", "the first is closed for those that came after it"


def test_unfinished_requests_end_quietly_with_the_server(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with ExitStack() as stack:
        with running_server() as server:
            for _ in range(5):
                stack.enter_context(connected(server.port)).sendall(UNFINISHED)
            ask(stack.enter_context(connected(server.port)))  # after the others
        assert [record.message for record in caplog.records if record.levelno > logging.INFO] == []


async def pieces_of_body(head: bytes, *pieces: bytes) -> list[bytes]:
    """What an application is given of a body that comes so."""
    given: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            given.append(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = HttpServer(app, LimitsConfig(), has_lifespan=False)
        serving = asyncio.create_task(server.serve([listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(head)
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.01)
        assert b" 204 " in await reader.readline()
        writer.close()
        server.should_exit = True
        await serving
    return given


@pytest.mark.parametrize(
    ("header", "pieces"),
    [
        (b"Content-Length: 20", [b"x"] * 20),
        (b"Transfer-Encoding: chunked", [b"1\r\nx\r\n"] * 20 + [b"0\r\n\r\n"]),
    ],
)
def test_a_body_that_trickles_wakes_the_application_once(header: bytes, pieces: list[bytes]) -> None:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n"
    assert asyncio.run(pieces_of_body(head, *pieces)) == [b"x" * 20]


def test_a_large_body_is_given_in_pieces() -> None:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\n"
    given = asyncio.run(pieces_of_body(head, b"x" * 40_000, b"y" * 40_000, b"z" * 10_000))
    assert b"".join(given) == b"x" * 40_000 + b"y" * 40_000 + b"z" * 10_000 and len(given) > 1


class Guest:
    """A connection that waits."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.has_left = False
        connections.open.add(self)
        connections.move(self, None, Wait.HEAD)

    def wait_is_over(self) -> None:
        self.has_left = True
        self._connections.open.discard(self)

    def make_way(self) -> None:
        self._connections.move(self, Wait.HEAD, None)
        self.wait_is_over()


def test_many_that_are_late_at_once_are_closed_by_turns() -> None:
    async def most_between_two_turns() -> tuple[int, int]:
        connections = Connections(10_000, header_timeout_s=0.05, idle_timeout_s=1)
        guests = [Guest(connections) for _ in range(1000)]
        num_left = most = 0
        while connections.open:
            await asyncio.sleep(0.001)
            most = max(most, sum(guest.has_left for guest in guests) - num_left)
            num_left = sum(guest.has_left for guest in guests)
        return num_left, most

    num_left, most = asyncio.run(most_between_two_turns())
    assert num_left == 1000 and most <= 250


def test_a_full_server_rests_between_those_that_others_make_way_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "_PAUSE_WHILE_FULL_S", 1000.0)
    with running_server(limits=LimitsConfig(max_connections=8)) as server, ExitStack() as stack:
        crowd = [stack.enter_context(connected(server.port)) for _ in range(8 + 32 + 20)]
        assert crowd[0].recv(1) == b""
        for connection in crowd[1:]:
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
