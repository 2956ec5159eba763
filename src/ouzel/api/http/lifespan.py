"""Runs background work from before the first request until after the last."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.drain_log import ListRequests, drain_with_log


class Lifespan:
    """Answers the server's `lifespan` messages, as the outermost ASGI app.

    At shutdown it waits for running responses, under any ASGI server: the server does not
    know of responses that run in the background.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        watch: Callable[[], Coroutine[None, None, None]],
        drain: Callable[[float], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
        drain_timeout_s: float,
        list_requests: ListRequests,
    ) -> None:
        """`watch` runs until the end. Then `drain` is awaited, `watch` cancelled and `close`
        awaited.

        `list_requests` returns the requests that `drain` waits for; the log names them.
        """
        self._app = app
        self._watch = watch
        self._drain = drain
        self._close = close
        self._drain_timeout_s = drain_timeout_s
        self._list_requests = list_requests
        self._has_drained = False

    async def drain(self, timeout_s: float) -> None:
        """Refuses new requests and waits for running ones. Call it before the server stops."""
        self._has_drained = True
        await drain_with_log(self._drain, timeout_s, self._list_requests)

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
