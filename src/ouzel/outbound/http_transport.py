"""Connects an HTTP client only to allowed hosts, at addresses that were checked.

Each new connection resolves its host and checks the addresses, so a name that changes its address
between the check and the connection gains nothing. Answers have a limit of bytes. They are asked
for without compression, and compressed answers are refused: a small one could fill the memory when
it is decompressed. Importing this module takes a quarter of a second.
"""

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from socket import SOCK_STREAM

import httpcore2
import httpx2
from httpcore2 import AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream

from ouzel.config.media_hosts import AllowedHosts
from ouzel.errors import InvalidRequest
from ouzel.outbound.hosts import Resolve, Target, check_host, checked_addresses
from ouzel.outbound.network import CheckedNetwork, SocketOption

logger = logging.getLogger(__name__)

_PORTS = {80: "http", 443: "https"}
_UNCOMPRESSED = "identity"
_EVENTS = "text/event-stream"


class AnswerTooLong(httpx2.TransportError):
    """An answer has more bytes than allowed."""


async def resolve_host(host: str, port: int) -> list[str]:
    """Returns the addresses of a host, without duplicates. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over connections that were checked; follows no redirect itself."""

    def __init__(
        self,
        allowed: AllowedHosts,
        *,
        connect_timeout_s: float,
        max_answer_bytes: int,
        max_stream_bytes: int | None = None,
        resolve: Resolve = resolve_host,
    ) -> None:
        """`max_answer_bytes` limits each answer, and `max_stream_bytes` streams of events."""
        self._max_answer_bytes = max_answer_bytes
        self._max_stream_bytes = max_stream_bytes or max_answer_bytes
        self._pool = httpcore2.AsyncConnectionPool(
            network_backend=_CheckedConnections(allowed, connect_timeout_s, resolve)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request. Raises httpx2.TransportError."""
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        url = request.url
        inner = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=_ask_uncompressed(request.headers.raw),
            content=request.stream,
            extensions=request.extensions,
        )
        with _faults_named():
            answer = await self._pool.handle_async_request(inner)
        assert isinstance(answer.stream, AsyncIterable)
        headers = httpx2.Headers(answer.headers)
        encoding = headers.get("content-encoding", _UNCOMPRESSED).strip().lower()
        if encoding != _UNCOMPRESSED:
            await answer.aclose()
            raise httpx2.RemoteProtocolError("the answer is compressed, which was not asked for")
        is_stream = headers.get("content-type", "").lower().startswith(_EVENTS)
        max_bytes = self._max_stream_bytes if is_stream else self._max_answer_bytes
        return httpx2.Response(
            status_code=answer.status,
            headers=headers,
            stream=_BoundedStream(answer, max_bytes),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response, max_bytes: int) -> None:
        self._answer = answer
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        num_bytes = 0
        with _faults_named():
            async for piece in self._answer.aiter_stream():
                num_bytes += len(piece)
                if num_bytes > self._max_bytes:
                    raise AnswerTooLong(f"the answer has more than {self._max_bytes} bytes")
                yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()


class _CheckedConnections(AsyncNetworkBackend):
    """Checks the host and its addresses for each new connection."""

    def __init__(self, allowed: AllowedHosts, timeout_s: float, resolve: Resolve) -> None:
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._resolve = resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the signature is httpcore2's
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> AsyncNetworkStream:
        """Connects to a checked address of the host. Raises ConnectError or ConnectTimeout."""
        target = Target(_PORTS.get(port, "http"), host, port, "/")
        try:
            check_host(target, self._allowed, "the URL")
            addresses = await checked_addresses(target, self._allowed, self._resolve, "the URL")
        except InvalidRequest as error:
            raise httpcore2.ConnectError(str(error)) from None
        network = CheckedNetwork(addresses, self._timeout_s / len(addresses))
        return await network.connect_tcp(host, port)

    async def sleep(self, seconds: float) -> None:
        await AnyIOBackend().sleep(seconds)


def _ask_uncompressed(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Returns the headers of a request that asks for an answer without compression."""
    others = [(name, value) for name, value in headers if name.lower() != b"accept-encoding"]
    return [*others, (b"Accept-Encoding", _UNCOMPRESSED.encode())]


@contextmanager
def _faults_named() -> Iterator[None]:
    """Converts errors of httpcore2 to the errors of httpx2 that its users expect."""
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise httpx2.ConnectTimeout(str(error) or "the server does not answer in time") from error
    except httpcore2.ConnectError as error:
        raise httpx2.ConnectError(str(error)) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
