"""An endpoint that takes a body and answers one object is a function between the two."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from ouzel.api.http.door import Door, may_take_long
from ouzel.api.http.send import send_json

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
            takes_long = may_take_long(admitted.body)
            await send_json(await asyncio.to_thread(encode, answer) if takes_long else encode(answer), send)


def computed(answer: Callable[[bytes], object]) -> AnswerBody:
    """Makes the answer beside the event loop where it may take long."""

    async def answer_body(request: Request, body: bytes) -> object:
        return await asyncio.to_thread(answer, body) if may_take_long(body) else answer(body)

    return answer_body
