"""Builds endpoints that change the models of the server, for holders of the admin key."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import msgspec
from starlette.types import Receive, Scope, Send

from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.framing import Framing
from ouzel.api.http.key_checks import AdminKeyCheck
from ouzel.api.http.request_admission import cancel_on_disconnect
from ouzel.api.http.send import send_json


@dataclass(frozen=True, slots=True)
class ObjectStream:
    """An answer of several objects."""

    objects: AsyncGenerator[msgspec.Struct, None]
    framing: Framing


@dataclass(frozen=True, slots=True)
class AdminRequest:
    scope: Scope
    body: bytes
    is_admin: bool  # False only where an endpoint has something for everybody


Answer = Callable[[AdminRequest], Awaitable[msgspec.Struct | ObjectStream | None]]


class AdminEndpoint:
    """Answers a request by an object, by a stream of objects, or by an empty body."""

    def __init__(self, changes: ModelChanges, answer: Answer, *, is_for_all: bool = False) -> None:
        """Takes `answer`, which is cancelled if the client disconnects.

        With `is_for_all`, requests without the admin key reach `answer` too.
        """
        self._shared = changes.catalogue.shared
        self._admin_key = AdminKeyCheck(self._shared.config.admin_api_key)
        self._answer = answer
        self._is_for_all = is_for_all

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_for_all:
            self._admin_key.check(scope)
        with self._shared.bodies.share() as share:
            body = await self._shared.bodies.read(scope, receive, share)
        async with cancel_on_disconnect(receive):
            request = AdminRequest(scope, body, self._admin_key.accepts(scope))
            answer = await self._answer(request)
            if isinstance(answer, ObjectStream):
                await self._send_stream(answer, scope, send)
                return
        await send_json(b"" if answer is None else msgspec.json.encode(answer), send)

    async def _send_stream(self, stream: ObjectStream, scope: Scope, send: Send) -> None:
        framing = get_exchange(scope).framing = stream.framing

        async def write_pieces() -> AsyncGenerator[bytes, None]:
            async with aclosing(stream.objects) as objects:
                async for each in objects:
                    yield framing.frames([each])

        pieces = write_pieces()
        await self._shared.streams.send(pieces, framing, send, end=lambda: framing.end)
