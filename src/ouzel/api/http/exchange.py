"""One HTTP request as ASGI shows it: its record in the scope, its body, its client's patience."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.types import Receive, Scope

from ouzel.api.http.framing import SSE, Framing
from ouzel.errors import BodyTimeout, InvalidRequest, PayloadTooLarge, UnsupportedEncoding
from ouzel.generation import Generation, SeveralGenerations

_SCOPE_KEY = "ouzel.exchange"
CLIENT_CLOSED_REQUEST = 499  # nginx's number for it; only ever in the log


class ClientDisconnected(Exception):
    """Nobody reads the answer any more."""


@dataclass(slots=True)
class Exchange:
    """What became of one request; the endpoint fills in the generation, the edge writes it all to the log."""

    request_id: str
    arrival_s: float = field(default_factory=time.perf_counter)
    key_id: str | None = None  # of the API key, an opaque digest; None where none is asked for
    status: int | None = None  # None until the response has started
    generation: Generation | SeveralGenerations | None = None
    framing: Framing = SSE  # of the stream, once it has begun

    def follow(self, generation: Generation | SeveralGenerations) -> None:
        """Takes the generation that the log line tells of; of several, one after the other, the last."""
        self.generation = generation


def open_exchange(scope: Scope, request_id: str) -> Exchange:
    exchange = Exchange(request_id)
    scope[_SCOPE_KEY] = exchange
    return exchange


def exchange_of(scope: Scope) -> Exchange:
    exchange = scope[_SCOPE_KEY]
    assert isinstance(exchange, Exchange)
    return exchange


async def read_body(scope: Scope, receive: Receive, *, max_body_bytes: int, timeout_s: float) -> bytes:
    """The whole body; PayloadTooLarge as soon as it is known to be too long, BodyTimeout when it does not come.

    What still arrives after that is dropped. UnsupportedEncoding for a compressed one.
    """
    encoding = (header(scope, b"content-encoding") or "identity").strip().lower()
    if encoding != "identity":
        raise UnsupportedEncoding(f"Content-Encoding must be identity, given {encoding[:40]}")
    try:
        async with asyncio.timeout(timeout_s):
            return await _receive_body(scope, receive, max_body_bytes)
    except TimeoutError:
        raise BodyTimeout(f"the request body must arrive within {timeout_s:g} s") from None


async def _receive_body(scope: Scope, receive: Receive, max_body_bytes: int) -> bytes:
    announced = header(scope, b"content-length")
    if announced is not None and announced.isdecimal() and int(announced) > max_body_bytes:
        raise _too_large(max_body_bytes)
    pieces: list[bytes] = []
    num_bytes = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        piece: bytes = message.get("body", b"")
        num_bytes += len(piece)
        if num_bytes > max_body_bytes:
            raise _too_large(max_body_bytes)
        pieces.append(piece)
        more = message.get("more_body", False)
    return b"".join(pieces)


def method_of(scope: Scope) -> str:
    """A WebSocket begins as a GET."""
    method: str = scope.get("method", "GET")
    return method


def header(scope: Scope, name: bytes) -> str | None:
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return None


def _too_large(max_body_bytes: int) -> InvalidRequest:
    return PayloadTooLarge(f"the request body must be <= {max_body_bytes} bytes long")


@asynccontextmanager
async def cancelled_on_disconnect(receive: Receive) -> AsyncGenerator[None, None]:
    """Cancels the block when the client goes away first, and raises ClientDisconnected; the body has been read."""
    block = asyncio.current_task()
    assert block is not None
    is_gone = False

    async def watch() -> None:
        nonlocal is_gone
        while (await receive())["type"] != "http.disconnect":
            pass
        is_gone = True
        block.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not is_gone:
            raise
        block.uncancel()
        raise ClientDisconnected from None
    finally:
        watcher.cancel()
