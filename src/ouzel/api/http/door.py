"""The body of a request is read, while the client is there; once it is whole it takes a place in a model's queue.

A server that is full says so before it reads anything.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from starlette.types import Receive, Scope

from ouzel.api.http.body_budget import Share
from ouzel.api.http.body_reader import BodyReader
from ouzel.api.http.exchange import ClientDisconnected
from ouzel.errors import Overloaded
from ouzel.generation import ServedModel
from ouzel.observability import Metrics


@dataclass(frozen=True, slots=True)
class Admitted:
    body: bytes
    place: ExitStack  # is left at the end, unless it is handed on with `pop_all`


class Door:
    """Bounds the requests that wait for a model, by its places; the bodies of all models have one reader."""

    def __init__(self, model: ServedModel, metrics: Metrics, bodies: BodyReader) -> None:
        self._engine = model.engine
        self._metrics = metrics
        self._bodies = bodies

    @asynccontextmanager
    async def body(self, scope: Scope, receive: Receive) -> AsyncGenerator[Admitted, None]:
        """Reads the body; cancels the block, and raises ClientDisconnected, when the client goes away first.

        Raises Overloaded, EngineUnavailable, PayloadTooLarge, BodyTimeout or UnsupportedEncoding. An Overloaded of the
        block's own counts as a refusal too.
        """
        self.place().close()  # a full server need not read it
        with self._bodies.share() as share:
            with self._counting_refusals():
                body = await self._bodies.read(scope, receive, share)
            with self.place() as place, self._counting_refusals():
                async with cancelled_on_disconnect(receive):
                    yield Admitted(body, place)

    def share(self) -> AbstractContextManager[Share]:
        """Returns what a WebSocket takes of the bytes for bodies, until it is left."""
        return self._bodies.share()

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
