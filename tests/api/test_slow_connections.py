"""Clients that send or read slowly lose their connections, and take no place of others."""

import base64
import json
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from ouzel.config import LimitsConfig
from tests.api.requests import wait_until
from tests.api.serving import RunningServer, running_server
from tests.api.test_connections import (
    GET,
    GET_AND_CLOSE,
    POST,
    SLOW,
    WEBSOCKET,
    build_head,
    connect,
    read_refusal,
    receive_all,
    send_and_receive,
)


@pytest.fixture(scope="module")
def hasty() -> Iterator[RunningServer]:
    with running_server(
        limits=LimitsConfig(header_timeout_s=0.2, idle_timeout_s=0.3, body_timeout_s=0.2)
    ) as server:
        yield server


@pytest.mark.parametrize("beginning", [b"G", GET[:-1], build_head(1000, ends=False)])
def test_a_head_that_does_not_come_to_its_end_is_a_408(
    hasty: RunningServer, beginning: bytes
) -> None:
    error = read_refusal(send_and_receive(hasty, beginning), 408)
    assert error["message"] == "the request's head must arrive within 0.2 s"


def test_trickling_is_no_help(hasty: RunningServer) -> None:
    with connect(hasty) as connection, pytest.raises(OSError):
        for byte in build_head(20_000):
            connection.sendall(bytes([byte]))
            time.sleep(0.01)


def test_a_connection_without_a_request_is_closed(hasty: RunningServer) -> None:
    assert send_and_receive(hasty) == send_and_receive(hasty, b"\r\n") == b""


def test_a_connection_that_waits_for_its_next_request_is_closed(hasty: RunningServer) -> None:
    assert send_and_receive(hasty, GET).count(b"HTTP/1.1 ") == 1
    answers = send_and_receive(hasty, GET, GET[:20])
    assert answers.count(b"HTTP/1.1 ") == 2 and b" 408 " in answers


def test_the_rest_of_a_body_that_nobody_reads_has_its_time_too(hasty: RunningServer) -> None:
    answer = send_and_receive(
        hasty, b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n12345678"
    )
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(b"HTTP/1.1 ") == 1


ENDLESS = {"model": "parrot", "prompt": "abc", "max_tokens": 19_000, "stream": True}


@contextmanager
def streaming(server: RunningServer) -> Iterator[Iterator[bytes]]:
    """Yields the pieces of a streamed answer after its first piece."""
    with httpx.stream(
        "POST", f"{server.url}/v1/completions", json=ENDLESS, timeout=None
    ) as response:
        pieces = response.iter_raw()
        next(pieces)
        yield pieces


def test_waiting_connections_are_closed_for_new_ones_and_streams_never() -> None:
    with (
        running_server(SLOW, LimitsConfig(max_connections=8)) as server,
        streaming(server) as pieces,
        ExitStack() as stack,
    ):
        waiting = [stack.enter_context(connect(server)) for _ in range(100)]
        for connection in waiting[::2]:
            connection.send(POST)
        assert receive_all(waiting[1]) == b""
        assert all(
            httpx.get(f"{server.url}/health", timeout=None).status_code == 200 for _ in range(3)
        )
        assert next(pieces)


def request_large_answer(connection: socket.socket, *headers: bytes) -> None:
    """Requests an answer that fills all buffers on the way, and reads none of it."""
    body = json.dumps(
        {"model": "parrot", "prompt": "abc" * 200_000, "max_tokens": 1, "echo": True}
    ).encode()
    lines = b"".join([b"Content-Length: %d\r\n" % len(body), *headers])
    connection.sendall(
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n" + body
    )


def test_a_websocket_is_no_client_that_reads_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    limits = LimitsConfig(write_timeout_s=1.0)
    with running_server({"max_model_len": 2**20}, limits) as server, ExitStack() as stack:
        server.shrink_send_buffers()
        connection = stack.enter_context(connect(server))
        request_large_answer(connection)
        wait_until(lambda: "POST /v1/completions 200 " in caplog.text)
        key = base64.b64encode(bytes(16))
        connection.sendall(
            WEBSOCKET + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"
        )
        answers = b""
        while b"HTTP/1.1 101 " not in answers[-2000:]:
            piece = connection.recv(2**16)
            assert piece, "this client was so late that it counted as gone"
            answers += piece
        connection.settimeout(0.1)
        stop = time.monotonic() + 2.5 * limits.write_timeout_s
        while time.monotonic() < stop:
            try:
                piece = connection.recv(2**16)
            except TimeoutError:
                continue
            assert piece, "the WebSocket was closed"
            if piece.startswith(b"\x89"):  # the frame is a ping
                connection.sendall(b"\x8a" + bytes([0x80 | piece[1]]) + bytes(4) + piece[2:])


def test_answers_that_nobody_reads_take_nobodys_place(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    limits = LimitsConfig(max_connections=2)
    with running_server({"max_model_len": 2**20}, limits) as server, ExitStack() as stack:
        server.shrink_send_buffers()
        for number in (1, 2):
            request_large_answer(stack.enter_context(connect(server)), b"Connection: close\r\n")
            while caplog.text.count("POST /v1/completions 200 ") < number:
                time.sleep(0.005)
        assert send_and_receive(server, GET_AND_CLOSE).startswith(b"HTTP/1.1 200 ")


def test_refused_clients_that_stay_take_nobodys_place() -> None:
    with running_server(limits=LimitsConfig(max_connections=4)) as server, ExitStack() as stack:
        refused = [stack.enter_context(connect(server)) for _ in range(8)]
        for connection in refused:
            connection.sendall(b"\x00\r\n")
            assert connection.recv(1)
        assert send_and_receive(server, GET_AND_CLOSE).startswith(b"HTTP/1.1 200 ")


def test_more_requests_than_connections_may_have_are_a_503() -> None:
    with running_server(SLOW, LimitsConfig(max_connections=2)) as server:
        with streaming(server), streaming(server):
            answer = send_and_receive(server, GET_AND_CLOSE)
            assert "max_connections is 2" in read_refusal(answer, 503)["message"]
            assert b"\r\nretry-after: 1\r\n" in answer
        wait_until(lambda: b" 200 " in send_and_receive(server, GET_AND_CLOSE))
