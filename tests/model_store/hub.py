"""Stands in for the Hugging Face hub: answers the requests of a snapshot's download."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

REVISION = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_right"


@dataclass
class Hub:
    """A hub with the repository owner/model, which has the files of a directory.

    The repository owner/gated has the same files and requires the token.
    """

    directory: Path
    url: str = ""
    cut_after_bytes: int = 0  # a transfer ends there once, without a word; 0: none does
    num_cuts: int = 0  # how many transfers are cut yet
    holds_back: threading.Event | None = None  # a cut transfer stays open until this is set
    gives_ranges: bool = True
    is_hidden: bool = False  # a network's log-in page answers all requests
    etag: str = ""  # replaces the checksum of each file, or of `etag_of` alone
    etag_of: str = ""
    claimed_bytes: int = 0  # the size of each file, as answers to HEAD say; 0: the real one
    revision: str = REVISION
    more_names: tuple[str, ...] = ()  # further names in the list of files
    is_endless: bool = False  # a file has no end
    endless: str = ""  # answers to paths with this in them have no end
    instead: bytes | None = None  # answers about the repository
    encoding: str = ""  # that answers about the repository claim to have
    requests: list[str] = field(default_factory=list)  # "GET /owner/model/... bytes=5-"

    @property
    def names(self) -> list[str]:
        return sorted(
            path.relative_to(self.directory).as_posix() for path in self.directory.rglob("*.*")
        )

    def ranges(self) -> list[str]:
        return [
            request.rpartition(" ")[2]
            for request in self.requests
            if request.startswith("GET") and "=" in request
        ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        return cast(_Server, self.server).hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.hub.requests.append(f"{self.command} {path} {self.headers.get('Range', '')}")
        if self.hub.is_hidden:
            self.answer(b"<html>Log in</html>")
            return
        if self.command == "GET" and self.hub.endless and self.hub.endless in path:
            self.answer_without_end(b" " * 2**16, {"ETag": '"x"', "X-Repo-Commit": REVISION})
            return
        if path.removeprefix("/api/models").startswith("/owner/gated"):
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self.answer(b"{}", status=403, headers={"X-Error-Code": "GatedRepo"})
                return
        elif not path.removeprefix("/api/models").startswith("/owner/model"):
            self.answer(b"{}", status=404, headers={"X-Error-Code": "RepoNotFound"})
            return
        if path.startswith("/api/"):
            self.answer_about_repository(path)
        else:
            self.answer_file(path.partition(f"/resolve/{REVISION}/")[2])

    def answer_about_repository(self, path: str) -> None:
        if self.hub.instead is not None:
            headers = {"Content-Encoding": self.hub.encoding} if self.hub.encoding else {}
            self.answer(self.hub.instead, headers=headers)
            return
        sizes = {name: (self.hub.directory / name).stat().st_size for name in self.hub.names}
        if "/tree/" in path:
            rows = [
                {"type": "file", "path": name, "size": size, "oid": REVISION}
                for name, size in sizes.items()
            ]
            self.answer(json.dumps(rows).encode())
        else:
            names = [{"rfilename": name} for name in (*sizes, *self.hub.more_names)]
            self.answer(
                json.dumps(
                    {"id": "owner/model", "sha": self.hub.revision, "siblings": names}
                ).encode()
            )

    def answer_file(self, name: str) -> None:
        content = (self.hub.directory / name).read_bytes()
        etag = self.hub.etag if name == (self.hub.etag_of or name) else ""
        etag = etag or hashlib.sha256(content).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": REVISION}
        if self.command == "HEAD" and self.hub.claimed_bytes:
            headers["Content-Length"] = str(self.hub.claimed_bytes)
        if (
            self.command == "HEAD"
            or not (wanted := self.headers.get("Range"))
            or not self.hub.gives_ranges
        ):
            if self.command == "GET" and self.hub.is_endless:
                self.answer_without_end(content, headers)
            else:
                self.answer(content, headers=headers)
            return
        begin = int(wanted.removeprefix("bytes=").rstrip("-"))
        headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        self.answer(content[begin:], status=206, headers=headers)

    def answer(
        self, content: bytes, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "GET":
            return
        if self.hub.num_cuts and len(content) > self.hub.cut_after_bytes:
            self.hub.num_cuts -= 1
            content, self.close_connection = content[: self.hub.cut_after_bytes], True
        self.wfile.write(content)
        if self.close_connection and self.hub.holds_back is not None:
            self.hub.holds_back.wait()

    def answer_without_end(self, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        with suppress(ConnectionError):
            while True:
                self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    hub: Hub


@contextmanager
def serving_hub(directory: Path) -> Iterator[Hub]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True  # connections that the library keeps open
    server.hub = Hub(directory, f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
