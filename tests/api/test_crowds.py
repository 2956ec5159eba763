"""With too many connections, the longest-waiting ones are closed, and slow senders cost little."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any  # ASGI messages hold anything

import pytest
import trustme
from starlette.types import ASGIApp

from ouzel.api.http.server import acceptor, connections
from ouzel.api.http.server.connections import Connections, Wait
from ouzel.api.http.server.http_server import HttpServer
from ouzel.config import LimitsConfig
from tests.api.serving import running_server

GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
UNFINISHED = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


def ask(connection: socket.socket) -> None:
    connection.sendall(GET)
    answer = b""
    while not answer.endswith(b'{"status":"ok"}'):
        piece = connection.recv(2**16)
        assert piece, "the server has closed the connection"
        answer += piece


def is_closed(connection: socket.socket) -> bool:
    """Waits for bytes or the end; the server resets a connection with unread bytes."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_flood_of_unfinished_bodies_displaces_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    # on a busy machine the idle connection would otherwise exceed its usual time
    monkeypatch.setitem(connections._USUAL_S, Wait.IDLE, 1e6)
    with running_server(limits=LimitsConfig(max_connections=8)) as server, ExitStack() as stack:
        idle = stack.enter_context(connect(server.port))
        for _ in range(2):
            ask(idle)
            flood = [stack.enter_context(connect(server.port)) for _ in range(100)]
            for connection in flood:
                connection.sendall(UNFINISHED)
            assert is_closed(flood[0]), "the first is closed for those that came after it"


def test_unfinished_requests_end_quietly_with_the_server(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with ExitStack() as stack:
        with running_server() as server:
            for _ in range(5):
                stack.enter_context(connect(server.port)).sendall(UNFINISHED)
            # this connection is newer than the others
            ask(stack.enter_context(connect(server.port)))
        assert [record.message for record in caplog.records if record.levelno > logging.INFO] == []


@asynccontextmanager
async def serve_app(
    app: ASGIApp, limits: LimitsConfig, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serves a bare ASGI application in this event loop; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = HttpServer(app, limits, tls, has_lifespan=False)
        running = asyncio.create_task(server.serve([listener]))
        await server.listening.wait()
        yield listener.getsockname()[1]
        server.should_exit = True
        await running


async def send_body(head: bytes, *pieces: bytes) -> list[bytes]:
    """Sends a body in pieces and returns the pieces that the application receives."""
    given: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            given.append(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async with serve_app(app, LimitsConfig()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.01)
        assert b" 204 " in await reader.readline()
        writer.close()
    return given


@pytest.mark.parametrize(
    ("header", "pieces"),
    [
        (b"Content-Length: 20", [b"x"] * 20),
        (b"Transfer-Encoding: chunked", [b"1\r\nx\r\n"] * 20 + [b"0\r\n\r\n"]),
    ],
)
def test_a_body_that_trickles_wakes_the_application_once(
    header: bytes, pieces: list[bytes]
) -> None:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n"
    assert asyncio.run(send_body(head, *pieces)) == [b"x" * 20]


def test_a_large_body_is_given_in_pieces() -> None:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\n"
    given = asyncio.run(send_body(head, b"x" * 40_000, b"y" * 40_000, b"z" * 10_000))
    assert b"".join(given) == b"x" * 40_000 + b"y" * 40_000 + b"z" * 10_000 and len(given) > 1


def test_a_body_without_end_is_too_large_as_soon_as_it_is() -> None:
    with (
        running_server(limits=LimitsConfig(max_body_bytes=1024)) as server,
        connect(server.port) as connection,
    ):
        head = (
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        connection.sendall(head + b"7D0\r\n" + b"x" * 2000 + b"\r\n")
        assert b" 413 " in connection.recv(2**16)


def test_an_answer_that_comes_before_the_body_is_sent_to_its_end() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(10):
            await send({"type": "http.response.body", "body": b"%d" % number, "more_body": True})
            await asyncio.sleep(0.05)
        await send({"type": "http.response.body"})

    async def answer() -> bytes:
        async with serve_app(app, LimitsConfig()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
            beginning = await reader.readuntil(b"1\r\n2\r\n")
        rest = await reader.read()
        writer.close()
        await writer.wait_closed()
        return beginning + rest

    assert asyncio.run(answer()).endswith(b"1\r\n9\r\n0\r\n\r\n")


async def answer_no_content(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


def test_newcomers_with_tls_do_not_displace_each_other() -> None:
    authority = trustme.CA()
    of_server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    of_client = ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(of_server)
    authority.configure_trust(of_client)

    async def ask(port: int, after_s: float) -> bytes:
        await asyncio.sleep(after_s)
        newcomer = connect(port)
        await asyncio.sleep(0.1)  # the client begins TLS later
        reader, writer = await asyncio.open_connection(
            sock=newcomer, ssl=of_client, server_hostname="localhost"
        )
        writer.write(GET)
        status = await reader.readline()
        writer.close()
        return status

    async def statuses() -> list[bytes]:
        async with serve_app(answer_no_content, LimitsConfig(max_connections=4), of_server) as port:
            waiting = [
                await asyncio.open_connection(
                    "127.0.0.1", port, ssl=of_client, server_hostname="localhost"
                )
                for _ in range(4 + 32)
            ]
            answers = await asyncio.gather(*(ask(port, number * 0.03) for number in range(10)))
            for _, writer in waiting:
                writer.close()
            return answers

    assert asyncio.run(statuses()) == [b"HTTP/1.1 204 No Content\r\n"] * 10


class Guest:
    """A connection that waits and records when it is closed for a new one."""

    def __init__(self, connections: Connections, wait: Wait = Wait.HEAD) -> None:
        self._connections, self._wait = connections, wait
        self.has_left = False
        connections.open.add(self)
        connections.move(self, None, wait)

    def end_wait(self) -> None:
        self.has_left = True
        self._connections.open.discard(self)

    def close_for_newcomer(self) -> None:
        self._connections.move(self, self._wait, None)
        self.end_wait()


def test_the_connection_that_has_waited_longest_is_closed_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def leavers() -> list[str]:
        times_s = iter([0.0, 4.0, 4.7, 4.8])
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: next(times_s, 5.0))
        connections = Connections(10_000, header_timeout_s=60, idle_timeout_s=60)
        waits = {
            "idle": Wait.IDLE,
            "first body": Wait.BODY,
            "second body": Wait.BODY,
            "head": Wait.HEAD,
        }
        guests = {name: Guest(connections, wait) for name, wait in waits.items()}
        left: list[str] = []
        while connections.make_room():
            left += [name for name, guest in guests.items() if guest.has_left and name not in left]
        return left

    assert asyncio.run(leavers()) == ["first body", "head", "idle", "second body"]


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


def test_a_full_server_rests_between_closed_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acceptor, "_PAUSE_WHILE_FULL_S", 1000.0)
    with running_server(limits=LimitsConfig(max_connections=8)) as server, ExitStack() as stack:
        crowd = [stack.enter_context(connect(server.port)) for _ in range(8 + 32 + 20)]
        assert crowd[0].recv(1) == b""
        for connection in crowd[1:]:
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
