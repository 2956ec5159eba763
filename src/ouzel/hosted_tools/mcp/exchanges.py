"""Exchanges HTTP requests with an MCP server, and keeps the library from ending the session.

1.  The library ends a session when one request fails. A session that has begun lives on here: the
    failed request gets an answer with an error status instead, and other calls go on. With the
    older transport the library would wait for ever for that call, so there the session ends.
2.  The library opens a stream for messages that belong to no call, again and again while the server
    closes it. Such messages mean nothing here, so the library reads that there is no such stream.
3.  A stream that a server has cut off may be resumed a few times only.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import httpx2

from ouzel.hosted_tools.mcp.faults import Faults
from ouzel.outbound.http_transport import AnswerTooLong

_MAX_RESUMPTIONS = 10  # limit for one session
_DELETE_TIMEOUT_S = 2.0
_NO_STREAM = 405
_FAILED = 502
_FIRST_FAILURE = 300


def make_client(
    transport: httpx2.AsyncBaseTransport,
    headers: Mapping[str, str],
    faults: Faults,
    *,
    timeout_s: float,
    has_one_stream: bool,
) -> httpx2.AsyncClient:
    """Returns the client of one session.

    `has_one_stream` tells that the server sends all answers on one stream, as the older of the two
    HTTP transports does. The streams may be silent for any time: callers limit the time of calls.
    """
    return httpx2.AsyncClient(
        headers=dict(headers),
        timeout=httpx2.Timeout(timeout_s, read=None),
        trust_env=False,
        transport=Exchanges(transport, faults, has_one_stream=has_one_stream),
    )


class Exchanges(httpx2.AsyncBaseTransport):
    def __init__(
        self, transport: httpx2.AsyncBaseTransport, faults: Faults, *, has_one_stream: bool
    ) -> None:
        self._transport = transport
        self._faults = faults
        self._has_one_stream = has_one_stream
        self._num_resumptions = 0
        self._has_begun = False
        self._events: _Body | None = None  # the one stream, if it is open

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request. Raises httpx2.TransportError before the first success."""
        if request.method == "GET" and not self._may_stream(request):
            return httpx2.Response(_NO_STREAM, request=request)
        try:
            async with asyncio.timeout(_DELETE_TIMEOUT_S if request.method == "DELETE" else None):
                answer = await self._transport.handle_async_request(request)
        except (httpx2.TransportError, TimeoutError) as error:
            self._note(error)
            if not self._has_begun and isinstance(error, httpx2.TransportError):
                raise
            answer = httpx2.Response(_FAILED)
        else:
            self._faults.clear()
            self._faults.status = answer.status_code
        if answer.status_code < _FIRST_FAILURE:
            self._faults.status = None
            self._has_begun = True
        elif self._events is not None:
            # The library goes on waiting for the answer to a message that it could not send.
            await self._events.aclose()
        if request.method == "DELETE":  # the session has ended, and nobody needs the body
            await answer.aclose()
            return httpx2.Response(answer.status_code, request=request)
        assert isinstance(answer.stream, httpx2.AsyncByteStream)
        answer.stream = body = _Body(answer.stream, self._note)
        if self._has_one_stream and request.method == "GET":
            self._events = body
        return answer

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _may_stream(self, request: httpx2.Request) -> bool:
        if self._has_one_stream:
            return True
        if "last-event-id" not in request.headers:
            return False
        self._num_resumptions += 1
        return self._num_resumptions <= _MAX_RESUMPTIONS

    def _note(self, error: Exception) -> None:
        self._faults.clear()
        if isinstance(error, AnswerTooLong):
            self._faults.text = f"sent too much: {error}"
        elif isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            self._faults.text, self._faults.detail = "cannot be reached", str(error)
        else:
            self._faults.text = "broke the connection"
            self._faults.detail = str(error) or type(error).__name__


class _Body(httpx2.AsyncByteStream):
    """The body of an answer; its faults are errors after which the library goes on."""

    def __init__(self, body: httpx2.AsyncByteStream, note: Callable[[Exception], None]) -> None:
        self._body = body
        self._note = note
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._body:
                yield piece
        except httpx2.TransportError as error:
            if not self._is_closed:
                self._note(error)
            raise httpx2.StreamError(str(error)) from error

    async def aclose(self) -> None:
        self._is_closed = True
        await self._body.aclose()
