"""Starts small HTTP servers beside the server under test."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def http_server(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[int]:
    """Yields the port of a server that answers with `handler`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    # The server looks for its end in this interval, in seconds.
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def file_server(directory: Path) -> Iterator[int]:
    """Yields the port of a server of the directory's files."""
    with http_server(partial(_QuietHandler, directory=str(directory))) as port:
        yield port


class _QuietHandler(SimpleHTTPRequestHandler):
    # the base class determines the name `format`
    def log_message(self, format: str, *args: object) -> None:
        pass
