"""`HttpClient` sends requests to an OpenAI-compatible server over HTTP, TLS or a Unix socket."""

import asyncio
import ipaddress
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2

from ouzel import __version__
from ouzel.client.base import JSON, MAX_ANSWER_BYTES, Answer, ApiFailure, read_failure
from ouzel.client.event_stream import EventStream
from ouzel.client.shown_url import shown_url

_CONNECT_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 1.0  # longest time between the last event of a stream and the end of the answer
_OK = 200
_VERSION_AND_ENDPOINT = re.compile(r"/v1(/(chat/completions|completions|responses|models))?$")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server: the part of URLs before API paths, and a Unix socket or ""."""

    root: str
    unix_socket: str = ""

    @property
    def is_loopback(self) -> bool:
        host = urlsplit(self.root).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")


def read_address(url: str) -> Address:
    """Reads the URL of a server, or `unix:` and the path of a socket.

    `http://`, `/v1` and the path of an endpoint may be present or not. Raises ApiFailure.
    """
    if url.startswith("unix:"):
        return Address("http://localhost", _socket_path(url))
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        httpx2.URL(text)
    except (ValueError, httpx2.InvalidURL):  # an invalid port, IPv6 address or host
        is_complete = False
    if not is_complete or parts.query or parts.fragment:
        raise ApiFailure(
            f"the URL of a server must be like http://localhost:8000/v1 or unix:/path, given "
            f"{shown_url(url)!r}"
        )
    path = _VERSION_AND_ENDPOINT.sub("", parts.path.rstrip("/")).rstrip("/")
    return Address(f"{parts.scheme}://{parts.netloc}{path}")


def _socket_path(url: str) -> str:
    path = url.removeprefix("unix:").removeprefix("//")
    if not path:
        raise ApiFailure(f"the URL of a Unix socket must be unix: and its path, given {url!r}")
    return path


def tls_context(*, ca_file: str = "", verifies: bool = True) -> ssl.SSLContext:
    """Makes a TLS context that trusts the authorities in `ca_file`, by default the system's.

    Raises ApiFailure for an unreadable file.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ApiFailure(f"{ca_file}: must be a file with PEM certificates: {error}") from error
    if not verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class HttpClient:
    """Implements ApiClient over HTTP, with any number of connections, which are reused.

    Proxies of the environment are used, but not for a server on this machine. An answer may take
    any time.

    Each running request has its own client of the HTTP library, with one connection. A shared pool
    would check all connections at the start and end of each request; with 500 connections that
    takes milliseconds, which a benchmark would measure.
    """

    def __init__(self, url: str, *, api_key: str = "", tls: ssl.SSLContext | None = None) -> None:
        """Raises ApiFailure for an invalid URL, an invalid API key or an unusable proxy."""
        self._address = read_address(url)
        if not (api_key.isascii() and api_key.isprintable()):
            raise ApiFailure("the API key must be printable ASCII")
        headers = {"user-agent": f"ouzel/{__version__}", "accept-encoding": "identity"}
        if api_key:
            headers["authorization"] = f"Bearer {api_key}"
        self._headers = headers
        self._tls = tls or tls_context()
        self._clients: list[httpx2.AsyncClient] = []
        self._idle = [self._new_client()]  # the most recently used client is the last

    @property
    def root(self) -> str:
        """Returns the address of the server for people, without a password."""
        socket = self._address.unix_socket
        return f"unix:{socket}" if socket else shown_url(self._address.root)

    async def ask(
        self, method: str, path: str, body: bytes = b"", *, content_type: str = JSON
    ) -> Answer:
        """Returns the whole answer, with any status. Raises ApiFailure if there is no answer."""
        try:
            with self._lent_client() as client:
                url = self._address.root + path
                headers = {"content-type": content_type} if body else {}
                async with client.stream(
                    method, url, content=body or None, headers=headers
                ) as answer:
                    _refuse_redirection(answer)
                    return await _whole(answer)
        except httpx2.HTTPError as error:
            raise self._failure(error) from error

    @asynccontextmanager
    async def events(
        self, path: str, body: bytes, *, content_type: str = JSON
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Posts the body and iterates over the data of the events (see `ApiClient.events`)."""
        url = self._address.root + path
        headers = {"content-type": content_type} if body else {}
        try:
            with self._lent_client() as client:
                async with client.stream("POST", url, content=body, headers=headers) as answer:
                    _refuse_redirection(answer)
                    if answer.status_code != _OK:
                        raise read_failure(await _whole(answer))
                    if answer.headers.get("content-type", "").startswith("application/json"):
                        raise _unstreamed(await _whole(answer))
                    async with aclosing(_read_events(answer)) as events:
                        yield events
        except httpx2.HTTPError as error:
            raise self._failure(error) from error

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()

    @contextmanager
    def _lent_client(self) -> Generator[httpx2.AsyncClient, None, None]:
        client = self._idle.pop() if self._idle else self._new_client()
        try:
            yield client
        finally:
            self._idle.append(client)

    def _new_client(self) -> httpx2.AsyncClient:
        socket = self._address.unix_socket
        transport: httpx2.AsyncHTTPTransport | None = None
        try:
            if socket:
                transport = httpx2.AsyncHTTPTransport(uds=socket, verify=self._tls)
            client = httpx2.AsyncClient(
                headers=self._headers,
                verify=self._tls,
                trust_env=not self._address.is_loopback,
                timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S),
                transport=transport,
            )
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            raise ApiFailure(
                f"the proxy that the environment names cannot be used: {error}"
            ) from error
        self._clients.append(client)
        return client

    def _failure(self, error: httpx2.HTTPError) -> ApiFailure:
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            return ApiFailure(f"{self.root}: the server cannot be reached: {reason}")
        return ApiFailure(f"{self.root}: the answer broke off: {reason}")


def _refuse_redirection(answer: httpx2.Response) -> None:
    """Raises ApiFailure for a redirection: the API key is sent only to the configured address."""
    if answer.has_redirect_location:
        location = answer.headers["location"]
        raise ApiFailure(
            f"{answer.status_code}: the server redirects to {location}; use the URL of that server",
            http_status=answer.status_code,
        )


def _unstreamed(answer: Answer) -> ApiFailure:
    """Describes an answer that is no stream; it may be an error message with the status 200."""
    if b'"error"' in answer.body:
        return read_failure(answer)
    return ApiFailure("the server answered a request for a stream with one JSON object")


async def _whole(answer: httpx2.Response) -> Answer:
    """Reads an answer to its end. Raises ApiFailure above `MAX_ANSWER_BYTES`."""
    body = bytearray()
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise ApiFailure(f"the server's answer is longer than {MAX_ANSWER_BYTES // 2**20} MiB")
    return Answer(answer.status_code, bytes(body))


async def _read_events(answer: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Yields the data of the events, and reads to the end of the answer.

    A connection can be reused only after the end of an answer. If the end does not follow the last
    event within a second, the caller closes the connection.
    """
    stream = EventStream()
    async with aclosing(answer.aiter_bytes()) as pieces:
        async for received in pieces:
            for event in stream.feed(received):
                yield event
            if stream.is_over:
                break
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_TIMEOUT_S):
                async for _ in pieces:
                    pass
