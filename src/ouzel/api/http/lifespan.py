"""`Lifespan` runs what goes on beside the requests, from before the first until after the last."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger(__name__)


class Lifespan:
    """Answers the server's `lifespan` messages, so it is the outermost ASGI app."""

    def __init__(
        self, app: ASGIApp, watch: Callable[[], Coroutine[None, None, None]], close: Callable[[], Awaitable[None]]
    ) -> None:
        """`watch` runs all the time and is cancelled at the end; then `close` is awaited."""
        self._app = app
        self._watch = watch
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        await receive()  # startup
        watching = asyncio.create_task(self._watch())
        await send({"type": "lifespan.startup.complete"})
        await receive()  # shutdown
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await self._close()
        await send({"type": "lifespan.shutdown.complete"})
