"""The transport of checked connections is tried with servers that answer too much."""

import gzip
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import httpx2
import pytest

from ouzel.config.media_hosts import read_media_hosts
from ouzel.outbound.http_transport import AnswerTooLong, CheckedTransport
from tests.http_servers import http_server

MAX_BYTES = 1000


class Answers(BaseHTTPRequestHandler):
    """Answers each path in its own way."""

    def do_GET(self) -> None:
        headers, body = {
            "/short": ({}, b"x" * MAX_BYTES),
            "/long": ({}, b"x" * (MAX_BYTES + 1)),
            "/events": ({"Content-Type": "Text/Event-Stream; charset=utf-8"}, b"x" * 2 * MAX_BYTES),
            "/compressed": ({"Content-Encoding": "gzip"}, gzip.compress(b"x" * 1000 * MAX_BYTES)),
            "/twice": ({"Content-Encoding": "identity, gzip"}, gzip.compress(b"x")),
            "/encodings": ({}, self.headers.get("accept-encoding", "").encode()),
        }[self.path]
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    # the base class determines the name `format`
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server(Answers) as port:
        yield f"http://127.0.0.1:{port}"


async def fetch(url: str) -> bytes:
    transport = CheckedTransport(
        read_media_hosts((urlsplit(url).netloc,)),
        connect_timeout_s=60.0,
        max_answer_bytes=MAX_BYTES,
        max_stream_bytes=2 * MAX_BYTES,
    )
    async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
        answer = await client.get(url)
        return answer.content


async def test_an_answer_may_have_as_many_bytes_as_allowed(url: str) -> None:
    assert len(await fetch(f"{url}/short")) == MAX_BYTES
    with pytest.raises(AnswerTooLong, match="more than 1000 bytes"):
        await fetch(f"{url}/long")


async def test_a_stream_of_events_has_a_limit_of_its_own(url: str) -> None:
    assert len(await fetch(f"{url}/events")) == 2 * MAX_BYTES


@pytest.mark.parametrize("path", ["/compressed", "/twice"])
async def test_a_compressed_answer_is_refused_before_it_grows(url: str, path: str) -> None:
    with pytest.raises(httpx2.RemoteProtocolError, match="compressed"):
        await fetch(url + path)


async def test_answers_are_asked_for_without_compression(url: str) -> None:
    assert await fetch(f"{url}/encodings") == b"identity"
