"""Every endpoint that generates: the door, the body, the generation, the answer. What differs is the dialect."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial

import msgspec
from starlette.types import Receive, Scope, Send

from ouzel.api.http.dialect import Answer, Dialect
from ouzel.api.http.exchange import Exchange, cancelled_on_disconnect, exchange_of, read_body
from ouzel.errors import Overloaded
from ouzel.generation import Event, Finished, Generation, ServedModel, SeveralGenerations, Usage
from ouzel.observability import Metrics
from ouzel.wire.decode import may_take_long

_MANY_LOGPROBS = 16  # writing more positions than this may take over a millisecond
_MANY_EVENTS = 256  # and so may folding more events


class GeneratingEndpoint:
    """An ASGI app. Leaving it early, for whatever reason, aborts the generation."""

    def __init__(
        self,
        dialect: Dialect,
        model: ServedModel,
        metrics: Metrics,
        *,
        max_body_bytes: int,
        body_timeout_s: float,
    ) -> None:
        self._dialect = dialect
        self._model = model
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes
        self._body_timeout_s = body_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._model.engine.admit():
                body = await read_body(
                    scope, receive, max_body_bytes=self._max_body_bytes, timeout_s=self._body_timeout_s
                )
                async with cancelled_on_disconnect(receive):
                    await self._answer(body, exchange_of(scope), send)
        except Overloaded:
            self._metrics.request_refused()
            raise

    async def _answer(self, body: bytes, exchange: Exchange, send: Send) -> None:
        prepare = self._dialect.prepare
        if may_take_long(body):
            requests, answer = await asyncio.to_thread(prepare, body, exchange.arrival_s)
        else:
            requests, answer = prepare(body, exchange.arrival_s)
        if answer.is_stream:
            exchange.framing = answer.framing
        if len(requests) == 1:
            generation = Generation(requests[0], self._model, self._metrics)
            exchange.follow(generation)
            await _send(generation, answer, send)
            return
        with self._model.engine.admit(len(requests) - 1):  # the first has its place since the door
            generations = SeveralGenerations(requests, self._model, self._metrics)
            exchange.follow(generations)
            await _send(generations, answer, send)


async def _send(generation: Generation | SeveralGenerations, answer: Answer, send: Send) -> None:
    if answer.is_stream:
        await _send_stream(generation, answer, send)
    else:
        await _send_whole(generation, answer, send)


async def _send_stream(generation: Generation | SeveralGenerations, answer: Answer, send: Send) -> None:
    """The response starts with the first token, so that a request that fails before it has an honest status."""
    is_started = False
    async with aclosing(generation.events()) as items:
        async for events in items:
            if not is_started:
                await send({"type": "http.response.start", "status": 200, "headers": answer.framing.headers})
                is_started = True
            chunks = await _written(partial(_chunk_frames, answer, events, generation.usage()), events)
            if chunks:
                await send({"type": "http.response.body", "body": chunks, "more_body": True})
    last = answer.framing.frames(answer.last_chunks(generation.usage())) + answer.framing.end
    await send({"type": "http.response.body", "body": last})


async def _send_whole(generation: Generation | SeveralGenerations, answer: Answer, send: Send) -> None:
    events: list[Event] = []
    async with aclosing(generation.events()) as items:
        async for new in items:
            events += new
    body = await _written(partial(_whole_body, answer, events, generation.usage()), events)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _chunk_frames(answer: Answer, events: Sequence[Event], usage: Usage) -> bytes:
    return answer.framing.frames(answer.chunks(events, usage))


def _whole_body(answer: Answer, events: Sequence[Event], usage: Usage) -> bytes:
    return msgspec.json.encode(answer.whole(events, usage))


async def _written(write: Callable[[], bytes], events: Sequence[Event]) -> bytes:
    num_positions = sum(len(event.logprobs) for event in events if not isinstance(event, Finished))
    takes_long = num_positions > _MANY_LOGPROBS or len(events) > _MANY_EVENTS
    return await asyncio.to_thread(write) if takes_long else write()
