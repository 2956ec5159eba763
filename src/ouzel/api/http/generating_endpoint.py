"""Runs a generating request from admission to the answer; the dialects differ by endpoint."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial

import msgspec
from starlette.types import Receive, Scope, Send

from ouzel.api.http.dialect import Answer, Dialect, DialectOfKey
from ouzel.api.http.exchange import Exchange, get_exchange
from ouzel.api.http.kept_answer import KeptAnswer
from ouzel.api.http.request_admission import RequestAdmission
from ouzel.api.http.send import send_json
from ouzel.api.http.streams import Streams
from ouzel.errors import InvalidRequest
from ouzel.generation import (
    Event,
    Finished,
    Generation,
    GenerationRequest,
    ServedModel,
    SeveralGenerations,
    Usage,
)
from ouzel.observability import Metrics
from ouzel.wire.aliases import restore_client_name
from ouzel.wire.chat_prompt import has_own_template
from ouzel.wire.decode import JsonObject
from ouzel.worker_threads import PreparationThreads

# encoding more logprobs than this, alternatives included, may take over a millisecond
_MANY_LOGPROBS = 256
# folding more events than this may take over a millisecond
_MANY_EVENTS = 256
_NO_USAGE = Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0, reasoning_tokens=0)


class GeneratingEndpoint:
    """Generates the answers of one endpoint. Cancelling the call aborts the generation."""

    def __init__(
        self,
        dialect_of_key: DialectOfKey,
        model: ServedModel,
        metrics: Metrics,
        admission: RequestAdmission,
        *,
        streams: Streams,
        threads: PreparationThreads,
        num_held_bytes: Callable[[bytes], int] | None = None,
    ) -> None:
        """`num_held_bytes` takes a body and returns the bytes that the request holds besides.

        These are bytes of content that the body refers to.
        """
        self._dialect_of_key = dialect_of_key
        self._threads = threads
        self._model = model
        self._metrics = metrics
        self._admission = admission
        self._streams = streams
        self._num_held_bytes = num_held_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._admission.admit(scope, receive) as admitted:
            await self._answer(admitted.body, get_exchange(scope), send)

    async def _answer(self, body: bytes, exchange: Exchange, send: Send) -> None:
        dialect = self._dialect_of_key(exchange.key_id)
        requests, answer = await self._threads.prepare(
            partial(dialect.parse, body),
            partial(_prepared, dialect, arrival_s=exchange.arrival_s),
            self._num_bytes(body),
            has_own_template=has_own_template,
        )
        if not requests:
            await send_json(_whole_body(answer, (), _NO_USAGE), send)
            return
        if answer.is_stream:
            exchange.framing = answer.framing
        if len(requests) == 1:
            generation = Generation(requests[0], self._model, self._metrics, key_id=exchange.key_id)
            exchange.log_generation(generation)
            await self._send(generation, answer, exchange, send)
            return
        # Admission has given the first request its place.
        with self._model.engine.admit(len(requests) - 1):
            generations = SeveralGenerations(
                requests, self._model, self._metrics, key_id=exchange.key_id
            )
            exchange.log_generation(generations)
            await self._send(generations, answer, exchange, send)

    def _num_bytes(self, body: bytes) -> int:
        return len(body) + (0 if self._num_held_bytes is None else self._num_held_bytes(body))

    async def _send(
        self,
        generation: Generation | SeveralGenerations,
        answer: Answer,
        exchange: Exchange,
        send: Send,
    ) -> None:
        if answer.is_stream:
            frames = _frames(generation, answer, exchange)
            end = partial(_end_frames, answer, generation)
            await self._streams.send(frames, answer.framing, send, end=end)
        else:
            await send_json(await _whole(generation, answer, exchange), send)


def _prepared(
    dialect: Dialect, fields: JsonObject, *, arrival_s: float
) -> tuple[list[GenerationRequest], Answer]:
    try:
        return dialect.prepare(fields, arrival_s)
    except InvalidRequest as error:
        raise restore_client_name(error, lambda: fields) from error.__cause__


async def _frames(
    generation: Generation | SeveralGenerations, answer: Answer, exchange: Exchange
) -> AsyncGenerator[bytes, None]:
    async with aclosing(generation.events()) as steps:
        async for events in steps:
            yield await _encode_off_loop(
                partial(_chunk_frames, answer, events, generation.usage()), events
            )
    if isinstance(answer, KeptAnswer):
        await answer.keep(generation.usage(), exchange)


async def _whole(
    generation: Generation | SeveralGenerations, answer: Answer, exchange: Exchange
) -> bytes:
    events: list[Event] = []
    async with aclosing(generation.events()) as steps:
        async for new in steps:
            events += new
    usage = generation.usage()
    body = await _encode_off_loop(partial(_whole_body, answer, events, usage), events)
    if isinstance(answer, KeptAnswer):
        await answer.keep(usage, exchange)
    return body


def _chunk_frames(answer: Answer, events: Sequence[Event], usage: Usage) -> bytes:
    return answer.framing.frames(answer.chunks(events, usage))


def _end_frames(answer: Answer, generation: Generation | SeveralGenerations) -> bytes:
    return answer.framing.frames(answer.last_chunks(generation.usage())) + answer.framing.end


def _whole_body(answer: Answer, events: Sequence[Event], usage: Usage) -> bytes:
    return msgspec.json.encode(answer.whole(events, usage))


async def _encode_off_loop(write: Callable[[], bytes], events: Sequence[Event]) -> bytes:
    scored = (event.logprobs for event in events if not isinstance(event, Finished))
    num_logprobs = sum(1 + len(position.top) for positions in scored for position in positions)
    takes_long = num_logprobs > _MANY_LOGPROBS or len(events) > _MANY_EVENTS
    return await asyncio.to_thread(write) if takes_long else write()
