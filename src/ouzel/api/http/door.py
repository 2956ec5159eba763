"""Every request with a body takes a place in the engine's queue; then its body is read, while the client is there."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from starlette.types import Receive, Scope

from ouzel.api.http.exchange import ClientDisconnected, header
from ouzel.config import LimitsConfig
from ouzel.errors import BodyTimeout, InvalidRequest, Overloaded, PayloadTooLarge, UnsupportedEncoding
from ouzel.generation import ServedModel
from ouzel.observability import Metrics

LONG_BODY_BYTES = 4096
_TEMPLATE_FIELD = b'chat_template"'


@dataclass(frozen=True, slots=True)
class Admitted:
    body: bytes
    place: ExitStack  # is left at the end, unless it is handed on with `pop_all`


class Door:
    """Bounds the bodies that wait: each holds one of the engine's places from before it is read."""

    def __init__(self, model: ServedModel, metrics: Metrics, limits: LimitsConfig) -> None:
        self._engine = model.engine
        self._metrics = metrics
        self._max_body_bytes = limits.max_body_bytes
        self._body_timeout_s = limits.body_timeout_s

    @asynccontextmanager
    async def body(self, scope: Scope, receive: Receive) -> AsyncGenerator[Admitted, None]:
        """Reads the body; cancels the block, and raises ClientDisconnected, when the client goes away first.

        Raises Overloaded, EngineUnavailable, PayloadTooLarge, BodyTimeout or UnsupportedEncoding. An Overloaded of the
        block's own counts as a refusal too.
        """
        with self.place() as place:
            body = await read_body(scope, receive, max_body_bytes=self._max_body_bytes, timeout_s=self._body_timeout_s)
            with self._counting_refusals():
                async with cancelled_on_disconnect(receive):
                    yield Admitted(body, place)

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


def may_take_long(body: bytes) -> bool:
    """Tells whether a prompt takes over a millisecond to make: of a long body, or of one with its own template."""
    return len(body) > LONG_BODY_BYTES or _TEMPLATE_FIELD in body


async def read_body(scope: Scope, receive: Receive, *, max_body_bytes: int, timeout_s: float) -> bytes:
    """Reads the whole body.

    Raises PayloadTooLarge as soon as it is known to be too long, BodyTimeout when it does not come, and
    UnsupportedEncoding for a compressed one; what still arrives after that is dropped.
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
