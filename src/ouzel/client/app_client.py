"""`AppClient` asks an ASGI app within this process, as a server around the app would.

Rules
1. Each request runs in a task of its own, and so in a context of its own.
2. The app is told that its client went away when a context is left before the answer's end, and is waited for: after
   that nothing of the request runs any more.
3. What the app sends is taken at once. Nobody waits for a reader, who holds no more than one answer anyway.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Scope

from ouzel.client.base import Answer, ApiFailure, failure_of
from ouzel.client.event_stream import EventStream

_ASGI = {"version": "3.0", "spec_version": "2.4"}
_HEADERS = ((b"host", b"localhost"), (b"content-type", b"application/json"))


class AppClient:
    """Between `start` and `close` the app's lifespan runs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._lifespan = _Lifespan(app)

    async def start(self) -> None:
        await self._lifespan.start()

    async def close(self) -> None:
        await self._lifespan.stop()

    async def ask(self, method: str, path: str, body: bytes = b"") -> Answer:
        async with self._asked(method, path, body) as request:
            return await request.answer()

    @asynccontextmanager
    async def events(self, path: str, body: bytes) -> AsyncGenerator[AsyncIterator[bytes], None]:
        async with self._asked("POST", path, body) as request:
            status = await request.status()
            if status != HTTPStatus.OK:
                raise failure_of(await request.answer())
            yield request.events()

    @asynccontextmanager
    async def _asked(self, method: str, path: str, body: bytes) -> AsyncGenerator["_Request", None]:
        request = _Request(self._app, _scope(method, path, body), body)
        try:
            yield request
        finally:
            await request.leave()


def _scope(method: str, path: str, body: bytes) -> Scope:
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
        "headers": [*_HEADERS, (b"content-length", str(len(body)).encode())],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
        "state": {},
    }


class _Request:
    """One request, which begins to run when it is made."""

    def __init__(self, app: ASGIApp, scope: Scope, body: bytes) -> None:
        self._body: bytes | None = body  # until the app has received it
        self._is_left = asyncio.Event()
        self._sent: asyncio.Queue[Message | None] = asyncio.Queue()  # None: no more comes
        self._status = 0  # until the answer has begun
        self._task = asyncio.create_task(self._run(app, scope))

    async def status(self) -> int:
        """Raises ApiFailure where the app ends without an answer."""
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
        """Yields what there is of the body. Raises ApiFailure where it has no end."""
        await self.status()
        more = True
        while more:
            message = await self._sent.get()
            if message is None:
                raise self._broken()
            yield message.get("body", b"")
            more = message.get("more_body", False)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Raises ApiFailure where the answer ends before the last event."""
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
            self._task.exception()  # is told by `_broken` where it matters, and is in the log

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
    """What the app does beside its requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._told: asyncio.Queue[Message] = asyncio.Queue()
        self._heard: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises what the app raises."""
        self._task = asyncio.create_task(self._run())
        await self._tell("lifespan.startup")

    async def stop(self) -> None:
        """May be called at any time, and more than once."""
        if self._task is not None:
            await self._tell("lifespan.shutdown")
            await self._task
            self._task = None

    async def _run(self) -> None:
        await self._app(
            {"type": "lifespan", "asgi": _ASGI, "state": {}}, self._told.get, self._heard.put
        )

    async def _tell(self, message_type: str) -> None:
        """Waits until the app has done what it is told."""
        assert self._task is not None
        self._told.put_nowait({"type": message_type})
        hearing = asyncio.create_task(self._heard.get())
        await asyncio.wait((hearing, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not hearing.done():
            hearing.cancel()
            await self._task
