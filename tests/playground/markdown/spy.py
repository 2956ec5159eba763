"""The spy is a host that hostile pages try to reach. It notes each connection and each datagram."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any  # the types of the library's handlers


class Spy:
    """Listens at `port` for HTTP, and at the same port for datagrams."""

    def __init__(self) -> None:
        spy = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                spy.seen.append(self.path)
                self.send_response(200)
                self.send_header("access-control-allow-origin", "*")
                self.send_header("content-length", "0")
                self.end_headers()

            do_POST = do_HEAD = do_OPTIONS = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                """Logs nothing."""

        class Server(ThreadingHTTPServer):
            def get_request(self) -> tuple[socket.socket, Any]:
                connection = super().get_request()
                spy.seen.append("connection")
                return connection

        self.seen: list[str] = []
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", self.port))

    def listen_to_datagrams(self) -> None:
        while True:
            try:
                content = self.datagrams.recv(2048)
            except OSError:  # the socket is closed
                return
            if content == b"end":
                return
            self.seen.append("datagram")


@contextmanager
def running_spy() -> Iterator[Spy]:
    spy = Spy()
    threads = [
        threading.Thread(target=spy.server.serve_forever, daemon=True),
        threading.Thread(target=spy.listen_to_datagrams, daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield spy
    finally:
        spy.server.shutdown()
        spy.server.server_close()
        spy.datagrams.sendto(b"end", ("127.0.0.1", spy.port))
        threads[1].join()
        spy.datagrams.close()
