"""A server of the playground's files and of an empty page, with the real server's headers.

It forwards other paths to a server behind it, which may start and stop while a page is open.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any  # the types of the library's handlers

import httpx

from ouzel.api.site.headers import HEADERS, PREVIEW_HEADERS
from ouzel.api.site.own_process import OWN_PROCESS_HEADERS
from ouzel.api.site.playground import PREVIEW
from ouzel.playground import DIRECTORY

_PREFIX = "/playground/"
_MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}
_STYLES = ("base", "markdown")
_EMPTY_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Empty</title>'
    '<link rel="icon" href="/playground/icon.svg">'
    + "".join(f'<link rel="stylesheet" href="/playground/styles/{name}.css">' for name in _STYLES)
    + "</head><body><main></main></body></html>"
)


class Pages:
    """Serves the empty page at `url`, and forwards unknown paths to the server at `behind`."""

    def __init__(self) -> None:
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                pages._answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Logs nothing."""

        self.behind: str | None = None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        if path == "/":
            self._send(handler, 200, _EMPTY_PAGE.encode(), "text/html")
        elif path.startswith(_PREFIX):
            file = DIRECTORY / path.removeprefix(_PREFIX)
            self._send(handler, 200, file.read_bytes(), _MEDIA_TYPES[file.suffix])
        else:
            self._hand_on(handler)

    def _hand_on(self, handler: BaseHTTPRequestHandler) -> None:
        """Forwards the request, or closes the connection if no server is behind."""
        if self.behind is None:
            handler.close_connection = True
            return
        names = {
            name: value
            for name, value in handler.headers.items()
            if name.lower() == "authorization"
        }
        response = httpx.get(self.behind + handler.path, headers=names, timeout=None)
        self._send(
            handler, response.status_code, response.content, response.headers["content-type"]
        )

    def _send(
        self, handler: BaseHTTPRequestHandler, status: int, content: bytes, media_type: str
    ) -> None:
        handler.send_response(status)
        handler.send_header("content-type", media_type)
        handler.send_header("content-length", str(len(content)))
        is_preview = handler.path == _PREFIX + PREVIEW
        headers = PREVIEW_HEADERS if is_preview else HEADERS | OWN_PROCESS_HEADERS
        for header, value in headers.items():
            handler.send_header(header, value)
        handler.end_headers()
        handler.wfile.write(content)


@contextmanager
def serving_pages() -> Iterator[Pages]:
    pages = Pages()
    thread = threading.Thread(target=pages.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield pages
    finally:
        pages.server.shutdown()
        thread.join()
        pages.server.server_close()
