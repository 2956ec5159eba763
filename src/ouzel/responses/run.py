"""One response while this server makes it, whoever listens.

    _make: begin ─> generate (may be cancelled) ─> end; meanwhile the store is told how far it has come

Only `_generate` is ever cancelled, so every response that has begun ends exactly once. The end is kept before anybody
sees it: who has seen a response end can read it and go on from it. While the store cannot keep it, one in the
background waits; whoever waits for another is told, and the store is owed its end (`is_settled`).
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack, aclosing

import msgspec
from msgspec.structs import replace

from ouzel.errors import UNEXPECTED, EngineUnavailable, OuzelError, StoreUnavailable
from ouzel.generation import Event, Generation
from ouzel.responses.event_log import EventLog
from ouzel.responses.events import ResponseEvent
from ouzel.responses.preparer import PreparedResponse
from ouzel.responses.response_builder import ResponseBuilder, end_event
from ouzel.responses.response_object import ResponseError, ResponseObject
from ouzel.responses.stored_progress import StoredProgress
from ouzel.store.records import NewResponse

logger = logging.getLogger(__name__)

_NOTE_EVERY_S = 0.5  # so much of an answer is lost at most when the server dies
_TRY_AGAIN_S = 0.5
_MANY_EVENTS = 64
_encode = msgspec.json.Encoder().encode


class Run:
    """`error`: what kept it from being answered, if anything did. `is_settled`: the store is not owed its end."""

    def __init__(
        self,
        prepared: PreparedResponse,
        generation: Generation,
        place: ExitStack,
        *,
        log: EventLog,
        keeping: StoredProgress | None,
        new: Callable[[ResponseObject, list[bytes]], NewResponse] | None,
    ) -> None:
        """`place` is left at the end. `new` makes the store's first record of it, where it has none yet."""
        self.id = prepared.response.id
        self.is_background = prepared.response.background
        self.generation = generation
        self.log = log
        self.error: Exception | None = None
        self.is_settled = keeping is None
        self._place = place
        self._keeping = keeping
        self._new = new
        self._builder = ResponseBuilder(
            replace(prepared.response, status="queued") if log else prepared.response,
            logprobs=prepared.logprobs,
            summarises=prepared.summarises,
            num_events=len(log),
        )
        self._generates = prepared.generates
        # Who has its id may ask for it, and a conversation is locked before anything is made in it.
        self._is_told_at_once = prepared.is_stream or self.is_background or prepared.response.conversation is not None
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._may_show = asyncio.Event()  # what it makes, of one that was queued
        self._generating: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self._is_left = False
        self._has_ended = False
        self._before_end: ResponseObject | None = None  # while the end is being kept
        self.task = asyncio.create_task(self._make(), name=f"response {self.id}")

    @property
    def is_kept(self) -> bool:
        """The store has it, so that it can be found by its id."""
        return self._keeping is not None and self._keeping.has_begun

    @property
    def key_id(self) -> str | None:
        return None if self._keeping is None else self._keeping.key_id

    @property
    def response(self) -> ResponseObject:
        """As far as it has come, and everybody may know."""
        return self._before_end or self._builder.snapshot

    async def answer(self) -> ResponseObject:
        """The whole response; one in the background as it stands. Raises what kept it from being made."""
        if self.is_background:
            await self.log.begun()
        else:
            await self.log.closed()
        if self.error is not None and not (self.is_background and len(self.log)):
            raise self.error
        return self.response

    async def follow(self, after: int = -1) -> AsyncGenerator[Sequence[bytes], None]:
        """Its events numbered above `after`. Raises what kept it from ending."""
        async with aclosing(self.log.follow(after)) as following:
            async for events in following:
                yield events
        if self.error is not None and not self._has_ended:
            raise self.error

    def steer(self) -> None:
        """Ends it as soon as the item that is being written is done."""
        self._builder.ends_after_item = True

    def cancel(self) -> None:
        self._is_cancelled = True
        if self._generating is not None:
            self._generating.cancel()

    def leave(self) -> None:
        """The server stops: one that has not begun is left to the next, any other fails."""
        self._is_left = True
        if self._generating is not None:
            self._generating.cancel()

    async def _make(self) -> None:
        try:
            with self._place:
                await self._begin()
                self._generating = asyncio.create_task(self._generate())
                if self._is_cancelled or self._is_left:
                    self._generating.cancel()
                try:
                    await self._tell_the_store(self._generating)
                finally:
                    self._generating.cancel()  # only if that has failed: else it is done
            await self._end(self._generating)
        except Exception as error:  # broad: nobody above awaits this task, and whoever follows must not wait for ever
            await self._fail(error)
        finally:
            self.log.close()
            if self.is_background:
                self._log_end()

    async def _begin(self) -> None:
        if self._keeping is None or self._new is None:
            return
        events = [_encode(event) for event in self._builder.queue()] if self.is_background else []
        new = self._new(self._builder.response, events)
        if self._is_told_at_once:
            await self._keeping.begin(new)
        else:
            self._keeping.hold(new)
        self._new = None  # frees the request
        self.log.add(events)

    async def _generate(self) -> None:
        held: list[Event] = []  # of several choices, which come one after the other
        async with aclosing(self.generation.events()) as steps:
            async for events in steps:
                if not self._begun.done():
                    self._begun.set_result(None)
                    if self.is_background:
                        await self._may_show.wait()
                    else:
                        self.log.add(self._builder.begin())
                if not self._generates:
                    continue
                if self.generation.request.n > 1:
                    held += events
                else:
                    self._advance(events)
                if self._builder.is_steered:
                    return
        held.sort(key=lambda event: event.index)
        for start in range(0, len(held), _MANY_EVENTS):
            self._advance(held[start : start + _MANY_EVENTS])
            await asyncio.sleep(0)  # others come between

    def _advance(self, events: Iterable[Event]) -> None:
        self.log.add([made for event in events for made in self._builder.advance(event)])

    async def _tell_the_store(self, generating: asyncio.Task[None]) -> None:
        """From time to time, until it has ended."""
        if self.is_background:
            await asyncio.wait({generating, self._begun}, return_when=asyncio.FIRST_COMPLETED)
            await self._leave_the_queue(generating)
        num_told = len(self.log)
        while not generating.done():
            await asyncio.wait({generating}, timeout=None if self._keeping is None else _NOTE_EVERY_S)
            if self._keeping is not None and not generating.done() and len(self.log) > num_told:
                num_told = len(self.log)
                await self._record(self._keeping.note(self.response), generating)

    async def _leave_the_queue(self, generating: asyncio.Task[None]) -> None:
        """That it runs is kept before anybody sees it, for a server that finds it queued makes it again."""
        if self._begun.done() and self._keeping is not None:
            events = [_encode(event) for event in self._builder.begin()]
            if await self._record(self._keeping.add(self._builder.response, events), generating):
                self.log.add(events)
        self._may_show.set()

    async def _record(self, recording: Coroutine[None, None, bool], generating: asyncio.Task[None]) -> bool:
        """False: it is no longer ours, and must not go on. What cannot be kept now is kept with what follows."""
        try:
            is_ours = await recording
        except StoreUnavailable as error:
            logger.warning("response %s could not be kept up to now: %s", self.id, error)
            return True
        if not is_ours:
            generating.cancel()
        return is_ours

    async def _end(self, generating: asyncio.Task[None]) -> None:
        if not generating.cancelled():
            generating.result()  # raises what went wrong
        if generating.cancelled():
            if self._is_left and not self._is_cancelled:
                raise EngineUnavailable("the server is shutting down", retry_after_s=1.0)
            await self._finish(self._builder.cancel())
        elif self._builder.is_steered:
            await self._finish(self._builder.steer(self.generation.usage()))
        else:
            await self._finish(self._builder.complete(self.generation.usage()))

    async def _fail(self, error: Exception) -> None:
        if not isinstance(error, OuzelError):
            logger.error("unexpected error", exc_info=error)
        self.error = error
        if isinstance(error, StoreUnavailable):
            logger.error("response %s could not be kept: %s", self.id, error)
            return
        try:
            if self._begun.done() or (self.is_background and len(self.log)):
                await self._finish_failed(error)
            elif self._keeping is not None:
                await self._keeping.drop()
                self.is_settled = True
        except StoreUnavailable as store_error:
            logger.error("the end of response %s could not be kept: %s", self.id, store_error)

    async def _finish_failed(self, error: Exception) -> None:
        if not self._begun.done() and isinstance(error, EngineUnavailable):
            return  # it is left in the queue
        self._builder = ResponseBuilder.resumed(self.response, len(self.log))  # it may have stopped anywhere
        await self._finish(self._builder.fail(response_error(error)))

    async def _finish(self, final: Iterable[ResponseEvent]) -> None:
        self._before_end = self.response
        try:
            last = list(final)
            encoded = [_encode(event) for event in last]
            if self._keeping is not None:
                encoded = await self._kept(last, encoded, self._keeping)
        finally:
            self._before_end = None
        self._has_ended = True
        self.log.add(encoded)

    async def _kept(self, last: list[ResponseEvent], encoded: list[bytes], keeping: StoredProgress) -> list[bytes]:
        """`last`, or how another server has ended the response."""
        is_ours = await self._keep(encoded, keeping)
        self.is_settled = True
        ended = None if is_ours else await keeping.ended_elsewhere()
        if ended is None:  # or it is deleted: this is for who still listens
            return encoded
        self._builder = ResponseBuilder.resumed(ended, len(self.log))
        return [*encoded[:-1], _encode(end_event(last[-1].sequence_number, ended))]

    async def _keep(self, encoded: list[bytes], keeping: StoredProgress) -> bool:
        while True:
            try:
                return await keeping.add(self._builder.response, encoded)
            except StoreUnavailable as error:
                if not self.is_background or self._is_left:
                    raise
                logger.warning("the end of response %s could not be kept yet: %s", self.id, error)
            await asyncio.sleep(_TRY_AGAIN_S)

    def _log_end(self) -> None:
        """As the edge does for a request."""
        usage = self.generation.usage()
        logger.info(
            "response %s %s prompt_tokens=%d completion_tokens=%d finish=%s error=%s",
            *(self.id, self.response.status, usage.prompt_tokens, usage.completion_tokens),
            ",".join(self.generation.finish_reasons),
            None if self.error is None else type(self.error).__name__,
        )


def response_error(error: Exception) -> ResponseError:
    if not isinstance(error, OuzelError):
        return ResponseError("server_error", UNEXPECTED)
    return ResponseError("invalid_prompt" if error.is_clients else "server_error", str(error))
