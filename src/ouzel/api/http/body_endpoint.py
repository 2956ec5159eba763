"""An endpoint that takes a body and answers one object is a function between the two."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from ouzel.api.http.door import Door
from ouzel.api.http.send import send_json
from ouzel.worker_threads import LONG_BODY_BYTES

AnswerBody = Callable[[Request, bytes], Awaitable[object]]


class BodyEndpoint:
    """It holds a place at the engine's door, so that waiting bodies are bounded."""

    def __init__(self, answer: AnswerBody, door: Door) -> None:
        """`answer` is cancelled when the client goes away."""
        self._answer = answer
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._door.body(scope, receive) as admitted:
            answer = await self._answer(Request(scope), admitted.body)
            encode = msgspec.json.encode
            takes_long = len(admitted.body) > LONG_BODY_BYTES
            await send_json(
                await asyncio.to_thread(encode, answer) if takes_long else encode(answer), send
            )
