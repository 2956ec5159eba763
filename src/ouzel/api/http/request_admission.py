"""Admits requests: reads the body, then takes a place in the queue of a model.

A full server refuses a request before it reads the body.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from starlette.types import Receive, Scope

from ouzel.api.http.body_budget import Share
from ouzel.api.http.body_reader import ReadsBodies
from ouzel.api.http.exchange import ClientDisconnected
from ouzel.errors import Overloaded
from ouzel.generation import ServedModel
from ouzel.observability import Metrics


@dataclass(frozen=True, slots=True)
class AdmittedBody:
    """The body of an admitted request and its place in the queue."""

    body: bytes
    place: ExitStack  # closed at the end, unless the endpoint takes it with `pop_all`


class RequestAdmission:
    """Limits the requests that wait for one model. All models share the reader of bodies."""

    def __init__(self, model: ServedModel, metrics: Metrics, bodies: ReadsBodies) -> None:
        self._engine = model.engine
        self._metrics = metrics
        self._bodies = bodies

    @asynccontextmanager
    async def admit(self, scope: Scope, receive: Receive) -> AsyncGenerator[AdmittedBody, None]:
        """Reads the body, takes a place in the queue and runs the block.

        If the client disconnects first, the block is cancelled and ClientDisconnected is raised.
        Also raises Overloaded, EngineUnavailable, PayloadTooLarge, BodyTimeout and
        UnsupportedEncoding. An Overloaded from the block counts as a refusal too.
        """
        self.take_place().close()  # refuses before the body is read if the server is full
        with self._bodies.share() as share:
            with self._counting_refusals():
                body = await self._bodies.read(scope, receive, share)
            with self.take_place() as place, self._counting_refusals():
                async with cancel_on_disconnect(receive):
                    yield AdmittedBody(body, place)

    def share(self) -> AbstractContextManager[Share]:
        """Returns a share of the byte budget for a WebSocket, as a context manager."""
        return self._bodies.share()

    def take_place(self) -> ExitStack:
        """Takes a place in the queue until the stack is closed.

        Raises Overloaded or EngineUnavailable.
        """
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
async def cancel_on_disconnect(receive: Receive) -> AsyncGenerator[None, None]:
    """Cancels the block if the client disconnects, and raises ClientDisconnected.

    The body must have been read before.
    """
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
