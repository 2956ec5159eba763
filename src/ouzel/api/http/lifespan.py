"""`Lifespan` runs what goes on beside the requests, from before the first until after the last."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.drain_log import ListRequests, drain_with_log


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
        list_requests: ListRequests,
    ) -> None:
        """`watch` runs all the time; at the end `drain` is awaited, `watch` cancelled, and `close` awaited.

        `list_requests` returns the requests for which `drain` waits; the log names them.
        """
        self._app = app
        self._watch = watch
        self._drain = drain
        self._close = close
        self._drain_timeout_s = drain_timeout_s
        self._list_requests = list_requests
        self._has_drained = False

    async def drain(self, timeout_s: float) -> None:
        """Takes no more requests and waits for those that run, before the server stops, which then does not wait."""
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
