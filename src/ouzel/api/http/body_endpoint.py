"""Turns a function from a request body to an answer object into an ASGI endpoint."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from ouzel.api.http.request_admission import RequestAdmission
from ouzel.api.http.send import send_json
from ouzel.worker_threads import LONG_BODY_BYTES

AnswerBody = Callable[[Request, bytes], Awaitable[object]]


class BodyEndpoint:
    """Answers a request body by a function. The request occupies a place in the model's queue."""

    def __init__(self, answer: AnswerBody, admission: RequestAdmission) -> None:
        """Takes the function `answer`, which is cancelled if the client disconnects."""
        self._answer = answer
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._admission.admit(scope, receive) as admitted:
            answer = await self._answer(Request(scope), admitted.body)
            encode = msgspec.json.encode
            takes_long = len(admitted.body) > LONG_BODY_BYTES
            await send_json(
                await asyncio.to_thread(encode, answer) if takes_long else encode(answer), send
            )
