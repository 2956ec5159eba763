"""The body of a request is read, while the client is there; once it is whole it takes a place in the engine's queue.

A server that is full says so before it reads anything.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from starlette.types import Receive, Scope

from ouzel.api.http.body_budget import BodyBudget, Share
from ouzel.api.http.exchange import ClientDisconnected, header
from ouzel.api.http.refusal import raise_refusal
from ouzel.config import LimitsConfig
from ouzel.errors import BodyTimeout, InvalidRequest, Overloaded, PayloadTooLarge, UnsupportedEncoding
from ouzel.generation import ServedModel
from ouzel.observability import Metrics


@dataclass(frozen=True, slots=True)
class Admitted:
    body: bytes
    place: ExitStack  # is left at the end, unless it is handed on with `pop_all`


class Door:
    """Bounds the bodies that are held, by their bytes, and the requests that wait for the engine, by its places."""

    def __init__(self, model: ServedModel, metrics: Metrics, limits: LimitsConfig) -> None:
        self._engine = model.engine
        self._metrics = metrics
        self._max_body_bytes = limits.max_body_bytes
        self._body_timeout_s = limits.body_timeout_s
        self._budget = BodyBudget(limits.most_body_bytes)

    @asynccontextmanager
    async def body(self, scope: Scope, receive: Receive) -> AsyncGenerator[Admitted, None]:
        """Reads the body; cancels the block, and raises ClientDisconnected, when the client goes away first.

        Raises Overloaded, EngineUnavailable, PayloadTooLarge, BodyTimeout or UnsupportedEncoding. An Overloaded of the
        block's own counts as a refusal too.
        """
        self.place().close()  # a full server need not read it
        with self._budget.share() as share:
            with self._counting_refusals():
                body = await self._read(scope, receive, share)
            with self.place() as place, self._counting_refusals():
                async with cancelled_on_disconnect(receive):
                    yield Admitted(body, place)

    async def _read(self, scope: Scope, receive: Receive, share: Share) -> bytes:
        """Raises PayloadTooLarge and Overloaded as soon as they are known; what still arrives after that is dropped."""
        _check_encoding(scope)
        try:
            async with asyncio.timeout(self._body_timeout_s):
                return await _receive_body(scope, receive, self._max_body_bytes, share)
        except TimeoutError:
            raise BodyTimeout(f"the request body must arrive within {self._body_timeout_s:g} s") from None

    def share(self) -> AbstractContextManager[Share]:
        """Returns what a WebSocket takes of the bytes for bodies, until it is left."""
        return self._budget.share()

    def place(self) -> ExitStack:
        """Takes a place, until the stack is left. Raises Overloaded or EngineUnavailable."""
        place = ExitStack()
        with self._counting_refusals():
            place.enter_context(self._engine.admit())
        return place

    @contextmanager
    def _counting_refusals(self) -> Iterator[None]:
        try:
            yield
        except Overloaded:
            self._metrics.request_refused()
            raise


def _check_encoding(scope: Scope) -> None:
    """Raises UnsupportedEncoding for a compressed body."""
    encoding = (header(scope, b"content-encoding") or "identity").strip().lower()
    if encoding != "identity":
        raise UnsupportedEncoding(f"Content-Encoding must be identity, given {encoding[:40]}")


async def _receive_body(scope: Scope, receive: Receive, max_body_bytes: int, share: Share) -> bytes:
    announced = _announced_bytes(scope)
    if announced is not None:
        if announced > max_body_bytes:
            raise _too_large(max_body_bytes)
        share.expect(announced)
    body = bytearray()  # pieces may be a byte long
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        body += message.get("body", b"")
        if len(body) > max_body_bytes:
            raise _too_large(max_body_bytes)
        share.grow_to(len(body))
        more = message.get("more_body", False)
    raise_refusal(scope)
    return bytes(body)


def _announced_bytes(scope: Scope) -> int | None:
    announced = header(scope, b"content-length")
    return int(announced) if announced is not None and announced.isdecimal() else None


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
