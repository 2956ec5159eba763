"""`ouzel doctor` finds the program that listens at an address, and names it if it is an Ouzel."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ouzel.doctor.address import server_at


@contextmanager
def serving(answer: str) -> Generator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def ours(version: object, *models: object) -> str:
    return json.dumps({"server": "Ouzel", "version": version, "models": models})


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ours("1.2", "a", "b"), "Ouzel 1.2 with a, b"),
        (ours("1.2"), "Ouzel 1.2 with no model"),
        (ours("1\x1b[31m", "\x1b]0;title\x07"), "Ouzel 1[31m with ]0;title"),
        (ours(["1"]), ""),
        (ours("1", 2), ""),
        ('{"server": "other"}', ""),
        ("[]", ""),
        ("<html>", ""),
    ],
)
def test_a_server_tells_who_it_is(answer: str, expected: str) -> None:
    with serving(answer) as port:
        assert server_at("127.0.0.1", port) == expected
        assert server_at("0.0.0.0", port) == expected
