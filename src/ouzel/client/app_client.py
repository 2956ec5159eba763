"""`AppClient` sends requests to an ASGI app in this process, like a server around the app.

Rules
1. Each request runs in its own task, and so in its own context.
2. A context that is left before the end of the answer disconnects the client, and then waits for
   the app: no code of the request runs afterwards.
3. The app never waits for the reader of an answer. The memory for one unread answer is small.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Scope

from ouzel.client.base import JSON, Answer, ApiFailure, read_failure
from ouzel.client.event_stream import EventStream

_ASGI = {"version": "3.0", "spec_version": "2.4"}


class AppClient:
    """Sends requests to an ASGI app, whose lifespan runs between `start` and `close`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._lifespan = _Lifespan(app)

    async def start(self) -> None:
        await self._lifespan.start()

    async def close(self) -> None:
        await self._lifespan.stop()

    async def ask(
        self, method: str, path: str, body: bytes = b"", *, content_type: str = JSON
    ) -> Answer:
        async with self._asked(method, path, body, content_type) as request:
            return await request.answer()

    @asynccontextmanager
    async def events(
        self, path: str, body: bytes, *, content_type: str = JSON
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        async with self._asked("POST", path, body, content_type) as request:
            status = await request.status()
            if status != HTTPStatus.OK:
                raise read_failure(await request.answer())
            yield request.events()

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, body: bytes, content_type: str
    ) -> AsyncGenerator["_Request", None]:
        request = _Request(self._app, _scope(method, path, body, content_type), body)
        try:
            yield request
        finally:
            await request.leave()


def _scope(method: str, path: str, body: bytes, content_type: str) -> Scope:
    headers = {
        b"host": b"localhost",
        b"content-type": content_type.encode(),
        b"content-length": str(len(body)).encode(),
    }
    plain_path, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": _ASGI,
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": plain_path,
        "raw_path": plain_path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": list(headers.items()),
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
        "state": {},
    }


class _Request:
    """A running request to the app; the constructor starts its task."""

    def __init__(self, app: ASGIApp, scope: Scope, body: bytes) -> None:
        self._body: bytes | None = body  # None once the app has received it
        self._is_left = asyncio.Event()
        self._sent: asyncio.Queue[Message | None] = asyncio.Queue()  # None marks the end
        self._status = 0  # 0 until the answer begins
        self._task = asyncio.create_task(self._run(app, scope))

    async def status(self) -> int:
        """Waits for the status of the answer. Raises ApiFailure if the app ends without one."""
        if not self._status:
            head = await self._sent.get()
            if head is None:
                raise self._broken()
            self._status = head["status"]
        return self._status

    async def answer(self) -> Answer:
        status = await self.status()
        return Answer(status, b"".join([piece async for piece in self.pieces()]))

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yields the pieces of the body. Raises ApiFailure if the app ends before the last one."""
        await self.status()
        more = True
        while more:
            message = await self._sent.get()
            if message is None:
                raise self._broken()
            yield message.get("body", b"")
            more = message.get("more_body", False)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yields the data of the events. Raises ApiFailure if `[DONE]` is missing at the end."""
        stream = EventStream()
        async for piece in self.pieces():
            for event in stream.feed(piece):
                yield event
        if not stream.is_over:
            raise self._broken()

    async def leave(self) -> None:
        self._is_left.set()
        await asyncio.wait((self._task,))
        if not self._task.cancelled():
            self._task.exception()  # marks it as seen; the app has logged it

    async def _run(self, app: ASGIApp, scope: Scope) -> None:
        try:
            await app(scope, self._receive, self._sent.put)
        finally:
            self._sent.put_nowait(None)

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._is_left.wait()
        return {"type": "http.disconnect"}

    def _broken(self) -> ApiFailure:
        return ApiFailure("the answer broke off")


class _Lifespan:
    """Runs the lifespan of an ASGI app: startup and shutdown."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._told: asyncio.Queue[Message] = asyncio.Queue()
        self._heard: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts the app and waits until it is ready. Raises the exceptions of the app."""
        self._task = asyncio.create_task(self._run())
        await self._tell("lifespan.startup")

    async def stop(self) -> None:
        """Stops the app, if it was started; further calls do nothing."""
        if self._task is not None:
            await self._tell("lifespan.shutdown")
            await self._task
            self._task = None

    async def _run(self) -> None:
        await self._app(
            {"type": "lifespan", "asgi": _ASGI, "state": {}}, self._told.get, self._heard.put
        )

    async def _tell(self, message_type: str) -> None:
        """Sends a lifespan message, and waits until the app answers or ends."""
        assert self._task is not None
        self._told.put_nowait({"type": message_type})
        hearing = asyncio.create_task(self._heard.get())
        await asyncio.wait((hearing, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not hearing.done():
            hearing.cancel()
            await self._task
