"""`Lifespan` runs what goes on beside the requests, from before the first until after the last."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger(__name__)


class Lifespan:
    """Answers the server's `lifespan` messages, so it is the outermost ASGI app.

    Whichever server hosts the app, what runs is waited for when it stops: a response in the background is no request
    that the server would know of.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        watch: Callable[[], Coroutine[None, None, None]],
        drain: Callable[[float], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
        drain_timeout_s: float,
    ) -> None:
        """`watch` runs all the time; at the end `drain` is awaited, `watch` cancelled, and `close` awaited."""
        self._app = app
        self._watch = watch
        self._drain = drain
        self._close = close
        self._drain_timeout_s = drain_timeout_s
        self._has_drained = False

    async def drain(self, timeout_s: float) -> None:
        """Takes no more requests and waits for those that run, before the server stops, which then does not wait."""
        self._has_drained = True
        await self._drain(timeout_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        await receive()  # startup
        watching = asyncio.create_task(self._watch())
        await send({"type": "lifespan.startup.complete"})
        await receive()  # shutdown
        if not self._has_drained:
            await self.drain(self._drain_timeout_s)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await self._close()
        await send({"type": "lifespan.shutdown.complete"})
