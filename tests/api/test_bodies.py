"""Slow or long bodies take no place in the queue, and their bytes are limited."""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from ouzel.config import LimitsConfig
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import read_options
from tests.api.requests import chat, read_error, sum_metric, wait_until
from tests.api.serving import RunningServer, running_server

PATH = "/v1/chat/completions"
MEBIBYTE = 2**20


def build_head(num_bytes: int) -> bytes:
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Length: {num_bytes}\r\nExpect: 100-continue\r\n\r\n"
    )
    return head.encode()


@contextmanager
def slow_body(
    server: RunningServer, body: bytes, num_bytes: int = 2 * MEBIBYTE
) -> Iterator[socket.socket]:
    """Sends the head and the beginning of a body to the server; yields the connection."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(build_head(num_bytes))
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        yield connection


def has_room(server: RunningServer, num_bytes: int) -> bool:
    """Tells whether the server accepts a body of that length now, without sending the body."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(build_head(num_bytes))
        return connection.recv(100).startswith(b"HTTP/1.1 100")


def test_bodies_that_do_not_come_take_no_place() -> None:
    limits = LimitsConfig(max_queued_requests=0)
    with (
        running_server({"max_num_seqs": 1}, limits) as server,
        server.client() as http,
        slow_body(server, b"{"),
        slow_body(server, b""),
    ):
        assert server.engine.num_unfinished == 0
        assert http.post(PATH, json=chat("Hi")).status_code == 200


def test_a_disconnect_in_the_middle_of_the_body_is_no_error(
    http: httpx.Client, server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    with slow_body(server, b"{"):
        pass
    wait_until(lambda: f"POST {PATH} 499 " in caplog.text)
    assert http.get("/health").status_code == 200
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_bodies_have_a_budget_of_bytes_that_short_ones_need_not() -> None:
    limits = LimitsConfig(max_body_bytes=2 * MEBIBYTE, max_body_bytes_total=2 * MEBIBYTE)
    with running_server(limits=limits) as server, server.client() as http:

        def is_refused(content: bytes | Iterator[bytes]) -> bool:
            response = http.post(PATH, content=content)
            if response.status_code == 400:  # the server has read the content, which is not JSON
                return False
            assert (response.status_code, response.headers["retry-after"]) == (429, "1")
            error = read_error(response)
            assert "max_body_bytes_total is 2097152" in error["message"]
            assert error["code"] == "overloaded"
            return True

        with slow_body(server, b" " * (MEBIBYTE + MEBIBYTE // 2)):
            # wait until the server has read the slow body
            wait_until(lambda: not has_room(server, MEBIBYTE))
            assert is_refused(b" " * MEBIBYTE)
            assert is_refused(b" " * 2**16 for _ in range(16))
            assert http.post(PATH, json=chat("Hi")).status_code == 200
            assert sum_metric(http.get("/metrics").text, "ouzel_requests_refused_total") == 3
        wait_until(lambda: not is_refused(b" " * MEBIBYTE))


def test_the_budget_holds_one_body_at_least() -> None:
    with pytest.raises(
        InvalidOption,
        match=r"--max-body-bytes-total: must be >= --max-body-bytes, 16777216, given 2000",
    ):
        read_options({"max_body_bytes_total": "2000"}, {})
