"""Endpoints that take a body and answer one object."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ouzel.api.http.exchange import cancelled_on_disconnect, read_body
from ouzel.config import LimitsConfig
from ouzel.errors import Overloaded
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.wire.decode import may_take_long

AnswerBody = Callable[[Request, bytes], Awaitable[object]]


class BodyEndpoint:
    """An ASGI app; it holds a place at the engine's door, so that waiting bodies are bounded."""

    def __init__(self, answer: AnswerBody, model: ServedModel, metrics: Metrics, limits: LimitsConfig) -> None:
        """`answer` is cancelled when the client goes away."""
        self._answer = answer
        self._model = model
        self._metrics = metrics
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self._limits
        try:
            with self._model.engine.admit():
                body = await read_body(
                    scope, receive, max_body_bytes=limits.max_body_bytes, timeout_s=limits.body_timeout_s
                )
                async with cancelled_on_disconnect(receive):
                    response = await self._response(Request(scope), body)
                    await response(scope, receive, send)
        except Overloaded:
            self._metrics.request_refused()
            raise

    async def _response(self, request: Request, body: bytes) -> Response:
        answer = await self._answer(request, body)
        return await asyncio.to_thread(json_response, answer) if may_take_long(body) else json_response(answer)


def computed(answer: Callable[[bytes], object]) -> AnswerBody:
    """Beside the event loop where it may take long."""

    async def answer_body(request: Request, body: bytes) -> object:
        return await asyncio.to_thread(answer, body) if may_take_long(body) else answer(body)

    return answer_body


def json_response(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
