"""Runs a generating request from admission to the answer; the dialects differ by endpoint."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Protocol, TypeVar

import msgspec
from starlette.types import Receive, Scope, Send

from ouzel.api.http.dialect import AnswerTo, Prepared
from ouzel.api.http.exchange import Exchange, get_exchange
from ouzel.api.http.hosted_chat import DialectOfKey, HostedChat, HostingDialect, ShownCalls
from ouzel.api.http.kept_answer import KeptAnswer
from ouzel.api.http.request_admission import RequestAdmission
from ouzel.api.http.send import send_json
from ouzel.api.http.streams import Streams
from ouzel.errors import InvalidRequest
from ouzel.generation import (
    Generation,
    Output,
    PromptScored,
    ServedModel,
    SeveralGenerations,
    Usage,
)
from ouzel.hosted_chats.hidden_calls import HiddenCalls
from ouzel.hosted_chats.tool_turns import ToolTurns
from ouzel.observability import Metrics
from ouzel.responses.hosted.kinds import OpeningContext
from ouzel.responses.hosted.opened_tools import open_tools
from ouzel.wire.aliases import restore_client_name
from ouzel.wire.chat_prompt import has_own_template
from ouzel.wire.decode import JsonObject
from ouzel.worker_threads import PreparationThreads

# encoding more logprobs than this, alternatives included, may take over a millisecond
_MANY_LOGPROBS = 256
# folding more events than this may take over a millisecond
_MANY_EVENTS = 256
_NO_USAGE = Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0, reasoning_tokens=0)

AnyEvent = TypeVar("AnyEvent")


class EventSource(Protocol[AnyEvent]):
    """Yields lists of events; its usage grows meanwhile."""

    def events(self) -> AsyncGenerator[list[AnyEvent], None]: ...

    def usage(self) -> Usage: ...


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
        prepared = await self._threads.prepare(
            partial(dialect.parse, body),
            partial(_prepared, dialect, arrival_s=exchange.arrival_s),
            self._num_bytes(body),
            has_own_template=has_own_template,
        )
        if isinstance(prepared, HostedChat):
            await self._answer_with_tools(prepared, self._num_bytes(body), exchange, send)
            return
        requests, answer = prepared
        if not requests:
            await send_json(_whole_body(answer, (), _NO_USAGE), send)
            return
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

    async def _answer_with_tools(
        self, chat: HostedChat, num_bytes: int, exchange: Exchange, send: Send
    ) -> None:
        context = OpeningContext(exchange.key_id, frozenset(), chat.items)
        tools = await open_tools(
            chat.kinds, chat.entries, context, max_calls=None, is_offered=chat.is_offered
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(tools.close)
            begun = await self._threads.run(
                partial(chat.begin, tools), num_bytes, has_own_template=chat.has_own_template
            )
            turns = ToolTurns(
                Generation(begun.request, self._model, self._metrics, key_id=exchange.key_id),
                tools,
                begun.rules,
                model=self._model,
                metrics=self._metrics,
                threads=self._threads,
                key_id=exchange.key_id,
                num_bytes=num_bytes,
            )
            exchange.log_generation(turns.generations)
            if isinstance(begun.answer, ShownCalls):
                await self._send(turns, begun.answer.answer, exchange, send)
            else:
                await self._send(HiddenCalls(turns), begun.answer, exchange, send)

    def _num_bytes(self, body: bytes) -> int:
        return len(body) + (0 if self._num_held_bytes is None else self._num_held_bytes(body))

    async def _send(
        self,
        generation: EventSource[AnyEvent],
        answer: AnswerTo[AnyEvent],
        exchange: Exchange,
        send: Send,
    ) -> None:
        if answer.is_stream:
            exchange.framing = answer.framing
            frames = _frames(generation, answer, exchange)
            end = partial(_end_frames, answer, generation)
            await self._streams.send(frames, answer.framing, send, end=end)
        else:
            await send_json(await _whole(generation, answer, exchange), send)


def _prepared(
    dialect: HostingDialect, fields: JsonObject, *, arrival_s: float
) -> Prepared | HostedChat:
    try:
        return dialect.prepare(fields, arrival_s)
    except InvalidRequest as error:
        raise restore_client_name(error, lambda: fields) from error.__cause__


async def _frames(
    generation: EventSource[AnyEvent], answer: AnswerTo[AnyEvent], exchange: Exchange
) -> AsyncGenerator[bytes, None]:
    async with aclosing(generation.events()) as steps:
        async for events in steps:
            yield await _encode_off_loop(
                partial(_chunk_frames, answer, events, generation.usage()), events
            )
    await _keep(answer, generation.usage(), exchange)


async def _whole(
    generation: EventSource[AnyEvent], answer: AnswerTo[AnyEvent], exchange: Exchange
) -> bytes:
    events: list[AnyEvent] = []
    async with aclosing(generation.events()) as steps:
        async for new in steps:
            events += new
    usage = generation.usage()
    body = await _encode_off_loop(partial(_whole_body, answer, events, usage), events)
    await _keep(answer, usage, exchange)
    return body


async def _keep(answer: object, usage: Usage, exchange: Exchange) -> None:
    if isinstance(answer, KeptAnswer):
        await answer.keep(usage, exchange)


def _chunk_frames(answer: AnswerTo[AnyEvent], events: Sequence[AnyEvent], usage: Usage) -> bytes:
    return answer.framing.frames(answer.chunks(events, usage))


def _end_frames(answer: AnswerTo[AnyEvent], generation: EventSource[AnyEvent]) -> bytes:
    return answer.framing.frames(answer.last_chunks(generation.usage())) + answer.framing.end


def _whole_body(answer: AnswerTo[AnyEvent], events: Sequence[AnyEvent], usage: Usage) -> bytes:
    return msgspec.json.encode(answer.whole(events, usage))


async def _encode_off_loop(write: Callable[[], bytes], events: Sequence[object]) -> bytes:
    scored = (event.logprobs for event in events if isinstance(event, PromptScored | Output))
    num_logprobs = sum(1 + len(position.top) for positions in scored for position in positions)
    takes_long = num_logprobs > _MANY_LOGPROBS or len(events) > _MANY_EVENTS
    return await asyncio.to_thread(write) if takes_long else write()
