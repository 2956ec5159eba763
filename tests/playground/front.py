"""A proxy before a server, which may go away, and may show the files of another build."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any  # the types of the library's handlers

import httpx

_HOP = {"transfer-encoding", "connection", "content-length", "content-encoding", "date", "server"}
_SENT = ("accept", "accept-language", "content-type", "cookie", "authorization", "if-none-match")


class Front:
    """Forwards requests to the server at `behind`, and closes connections if there is none.

    `build` takes the place of the server's build in all headers and scripts, and `only` is the one
    path that is answered.
    """

    def __init__(self) -> None:
        front = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                front._answer(self)

            do_POST = do_DELETE = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                """Logs nothing."""

        self.behind: str | None = None
        self.build: str | None = None
        self.only: str | None = None
        self.paths: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        self.paths.append(handler.path)
        if self.behind is None or self.only not in (None, handler.path):
            return
        names = {name: handler.headers[name] for name in _SENT if name in handler.headers}
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        try:
            answer = httpx.request(
                handler.command,
                self.behind + handler.path,
                headers=names,
                content=body,
                timeout=None,
            )
        except httpx.TransportError:
            return  # the server is stopping
        content, build = answer.content, answer.headers.get("ouzel-build")
        handler.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name.lower() not in _HOP | {"ouzel-build", "etag"}:
                handler.send_header(name, value)
        if build is not None:
            shown = self.build or build
            content = content.replace(build.encode(), shown.encode())
            handler.send_header("ouzel-build", shown)
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@contextmanager
def serving_front() -> Iterator[Front]:
    front = Front()
    thread = threading.Thread(target=front.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield front
    finally:
        front.server.shutdown()
        thread.join()
        front.server.server_close()
