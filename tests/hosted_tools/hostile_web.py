"""Runs a web server whose pages do harm: they never end, hang, or are bombs."""

import gzip
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.http_servers import http_server

_MIB = b" " * 2**20


@dataclass
class HostileWeb:
    port: int = 0
    may_end: threading.Event = field(default_factory=threading.Event)  # hanging answers go on
    has_hung: threading.Event = field(default_factory=threading.Event)  # an answer hangs
    has_left: threading.Event = field(default_factory=threading.Event)  # the client has left

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@contextmanager
def running_hostile_web() -> Iterator[HostileWeb]:
    web = HostileWeb()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/").replace("-", "_").replace(".", "_")
            answer = getattr(self, f"answer_{name}", None)
            if answer is None:
                self.send_error(404)
                return
            try:
                answer()
            except (BrokenPipeError, ConnectionResetError):
                web.has_left.set()

        def _begin(self, **headers: str) -> None:
            self.send_response(200)
            for name, value in {"content_type": "text/html", **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()

        def answer_endless(self) -> None:
            self._begin()
            while True:
                self.wfile.write(_MIB)

        def answer_silent(self) -> None:
            web.has_hung.set()
            web.may_end.wait()

        def answer_stopped(self) -> None:
            self._begin(content_length="1000")
            self.wfile.write(b"<html>")
            web.has_hung.set()
            web.may_end.wait()

        def answer_gzip_by_header(self) -> None:
            self._begin(content_encoding="gzip")
            self.wfile.write(_bomb())

        def answer_gzip_as_html(self) -> None:
            self._begin()
            self.wfile.write(_bomb())

        def answer_gzip_as_text(self) -> None:
            self._begin(content_type="text/plain")
            self.wfile.write(_bomb())

        def answer_zlib_charset(self) -> None:
            self._begin(content_type="text/plain; charset=zlib")
            self.wfile.write(zlib.compress(b"a" * 1000))

        def answer_punycode(self) -> None:
            self._begin(content_type="text/plain; charset=punycode")
            self.wfile.write(b"a" * 4_000_000 + b"-" + b"ba" * 30_000)

        def answer_shorter(self) -> None:
            self._begin(content_length="1000", content_type="text/plain")
            self.wfile.write(b"short")

        def answer_no_http(self) -> None:
            self.wfile.write(b"\x00\xff nonsense\r\n\r\n")

        def answer_long_header(self) -> None:
            self._begin(x="a" * 2**20)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http_server(Handler) as web.port:
        try:
            yield web
        finally:
            web.may_end.set()


def _bomb() -> bytes:
    """Returns 2 MiB that become 2 GiB."""
    block = gzip.compress(_MIB * 64)
    return block * 32
