"""Frames that no library would send reach the server over a plain socket."""

import base64
import json
import logging
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ouzel.config import LimitsConfig
from tests.api.requests import wait_until
from tests.api.serving import RunningServer, running_server

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
MASK = bytes(4)  # a mask of zeros leaves the data unchanged


def build_opening(method: str = "GET") -> bytes:
    headers = [
        "Host: localhost",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
    ]
    headers.append(f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}")
    return "\r\n".join([f"{method} /v1/responses HTTP/1.1", *headers, "", ""]).encode()


def frame(opcode: int, data: bytes, *, is_last: bool = True) -> bytes:
    head = bytes([opcode | (0x80 if is_last else 0)])
    length = (
        bytes([0x80 | len(data)])
        if len(data) < 126
        else bytes([0x80 | 126]) + len(data).to_bytes(2, "big")
    )
    return head + length + MASK + data


def create(said: str, **fields: object) -> bytes:
    body = {"type": "response.create", "model": "parrot", "input": said, **fields}
    return json.dumps(body, ensure_ascii=False).encode()


class Frames:
    def __init__(self, connection: socket.socket) -> None:
        self._bytes = connection.makefile("rb")

    def __enter__(self) -> "Frames":
        return self

    def __exit__(self, *_: object) -> None:
        self._bytes.close()

    def next(self) -> tuple[int, bytes]:
        head, short = self._bytes.read(2)
        length = (
            short
            if short < 126
            else int.from_bytes(self._bytes.read(2 if short == 126 else 8), "big")
        )
        return head & 0x0F, self._bytes.read(length)


@contextmanager
def open_connection(server: RunningServer, window: int = 65536) -> Iterator[socket.socket]:
    """Opens a WebSocket; `window` bytes wait in the system for a client that does not read."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(build_opening())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += connection.recv(1)
        assert answer.startswith(b"HTTP/1.1 101 ")
        yield connection


def test_a_message_may_come_in_the_smallest_fragments(server: RunningServer) -> None:
    message = create("Grüße")
    with open_connection(server) as connection, Frames(connection) as frames:
        connection.sendall(frame(TEXT, b"", is_last=False))
        for byte in message:
            connection.sendall(
                frame(0, bytes([byte]), is_last=False) + frame(0, b"", is_last=False)
            )
        connection.sendall(frame(PING, b"between") + frame(0, b""))
        assert frames.next() == (PONG, b"between")
        while (event := json.loads(frames.next()[1]))["type"] != "response.completed":
            pass
        assert event["response"]["output"][0]["content"][0]["text"] == "Grüße"


def test_a_binary_message_ends_the_connection_without_a_traceback(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    with open_connection(server) as connection, Frames(connection) as frames:
        connection.sendall(frame(TEXT, b"\xff"))
        assert frames.next() == (CLOSE, (1007).to_bytes(2, "big") + b"invalid UTF-8")
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_pings_are_answered_as_far_as_the_client_reads() -> None:
    num = 4000
    with running_server({"step_s": 0.01}) as server:
        server.shrink_send_buffers()
        with open_connection(server) as connection, Frames(connection) as frames:
            connection.sendall(b"".join(frame(PING, b"%0125d" % number) for number in range(num)))
            connection.sendall(frame(TEXT, create("x" * 110)))
            # the request comes after all pings, so the server has received them
            wait_until(lambda: server.engine.num_unfinished == 1)
            answered = [frames.next()]
            while answered[-1] != (PONG, b"%0125d" % (num - 1)):
                answered.append(frames.next())
            assert len(answered) < num // 2


def test_a_client_that_reads_nothing_loses_its_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    with running_server(limits=LimitsConfig(write_timeout_s=0.1)) as server:
        server.shrink_send_buffers()
        with open_connection(server, window=2048) as connection:
            connection.sendall(frame(TEXT, create("x" * 110)))
            wait_until(lambda: "GET /v1/responses 101 duration_s=" in caplog.text)
            assert "response.create /v1/responses 200" in caplog.text


def test_a_client_that_vanishes_ends_its_responses_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_server({"step_s": 0.002}) as server:
        for delay_ms in range(40):
            with open_connection(server) as connection:
                lanes = [
                    frame(TEXT, create("Hello", stream_id=f"lane-{number}")) for number in range(16)
                ]
                connection.sendall(b"".join(lanes))
                time.sleep(delay_ms / 1000)  # the responses are in progress or have ended
                # closing the connection then sends a reset
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wait_until(
            lambda: (
                server.engine.num_unfinished == 0
                and server.engine.num_free == server.engine.max_admitted
            )
        )
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_a_websocket_begins_with_a_get(server: RunningServer) -> None:
    with (
        socket.create_connection(("127.0.0.1", server.port)) as connection,
        connection.makefile("rb") as answer,
    ):
        connection.sendall(build_opening("POST"))
        assert answer.read().startswith(b"HTTP/1.1 400 ")
