"""Makes one response, with or without a client that follows its events.

    _make: generate (may be cancelled) ─> end; meanwhile the progress is stored, the start first

1.  A run goes through the stages of `stage.py`; `stored_progress.py` writes it to the store.
2.  A response that a client follows begins as soon as the engine has accepted the request. The
    client therefore has the id while the prompt waits or is computed.
3.  Every other response begins with its first output. Its client either sees nothing before the
    end, or sees that a response in the background is queued.
4.  Only the task of `_cancellable` is ever cancelled, so every response that has begun ends exactly
    once.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from enum import Enum

import msgspec
from msgspec.structs import replace

from ouzel.errors import STOPS, UNEXPECTED, EngineUnavailable, OuzelError
from ouzel.generation import Event, Generation, SuccessiveGenerations
from ouzel.responses.event_base import ResponseEvent
from ouzel.responses.event_log import EventLog
from ouzel.responses.preparer import PreparedResponse
from ouzel.responses.response_builder import ResponseBuilder, end_event
from ouzel.responses.response_object import (
    ResponseError,
    ResponseObject,
    find_earlier_usage,
)
from ouzel.responses.stage import Stage, step
from ouzel.responses.stored.response_log import begin_span, log_end
from ouzel.responses.stored_progress import StoredProgress
from ouzel.responses.tool_loop import ToolLoop
from ouzel.store.errors import StoreUnavailable

logger = logging.getLogger(__name__)

_MAX_EVENTS_AT_ONCE = 64  # then other tasks of the event loop run
_encode = msgspec.json.Encoder().encode


class _Stop(Enum):
    """Gives the reason to stop a generation early; CANCEL wins over LEAVE."""

    CANCEL = "cancel"
    LEAVE = "leave"  # the server shuts down


class Run:
    """Makes one response; followers read `log`, and a failed run has an `error`."""

    def __init__(
        self,
        prepared: PreparedResponse,
        generation: Generation,
        place: ExitStack,
        *,
        log: EventLog,
        progress: StoredProgress | None,
        key_id: str | None,
        begun: ResponseObject | None = None,
    ) -> None:
        """Starts the task of the run.

        `place` is the admission of the request to the engine; the run releases it at the end.
        `log` has the events that a queued response already has. `progress` is None if the
        response is not stored. `begun` is the state of a response that a stopped server has begun.
        """
        self.id = prepared.response.id
        self.key_id = key_id  # the response belongs to this API key
        self.is_background = prepared.response.background
        self.generation: Generation | SuccessiveGenerations = generation
        self.log = log
        self.error: BaseException | None = None
        self._place = place
        self._progress = progress
        self._generates = prepared.generates
        self._first_turn = generation
        self._builder = ResponseBuilder(
            replace(prepared.response, status="queued") if log else prepared.response,
            logprobs=prepared.logprobs,
            reasoning_form=prepared.reasoning_form,
            limit_reason=prepared.limit_reason,
            compaction=prepared.context.compaction,
            tool_names=prepared.tool_names,
            hosted=prepared.hosted,
            num_events=len(log),
        )
        self._is_begun = begun is not None
        if begun is not None:
            self._builder.restore(begun)
        self._loop: ToolLoop | None = None
        if prepared.hosted is not None and prepared.next_turn is not None:
            has_calls = bool(prepared.hosted.first_calls)
            self.generation = SuccessiveGenerations(
                generation,
                runs_first=begun is None and not has_calls,
                earlier_usage=None if begun is None else find_earlier_usage(begun),
            )
            if progress is not None:
                progress.count_usage = self.generation.usage
            self._loop = ToolLoop(
                prepared,
                prepared.hosted,
                prepared.next_turn,
                self.generation,
                log=log,
                progress=progress,
                key_id=key_id,
            )
        self._stage = Stage.NEW
        self._before_end = prepared.response  # shown to clients during the stage ENDING
        self._stop: _Stop | None = None
        self._generating: asyncio.Task[None] | None = None
        self._has_output = asyncio.Event()
        self._has_begun = asyncio.Event()  # the builder takes output from then on
        begins_when_accepted = prepared.is_stream and not self.is_background
        self._may_begin = generation.accepted if begins_when_accepted else self._has_output
        self.task = asyncio.create_task(self._make(), name=f"response {self.id}")

    @property
    def is_stored(self) -> bool:
        """Tells whether the store has the response, so that it can be found by its id."""
        return self._progress is not None and self._progress.has_begun

    @property
    def is_settled(self) -> bool:
        """Tells, for a finished run, whether the store needs nothing more about the response."""
        return self._progress is None or self._stage in (Stage.ENDED, Stage.REFUSED)

    @property
    def response(self) -> ResponseObject:
        """Returns the snapshot that clients may see; while ENDING, the one before the end."""
        return self._before_end if self._stage is Stage.ENDING else self._builder.snapshot

    async def answer(self) -> ResponseObject:
        """Waits for the end of the response and returns the response.

        A response in the background is returned in its current state, as soon as it has begun.
        Raises the error of a failed run, except for a response in the background that had begun.
        """
        if self.is_background:
            await self.log.begun()
        else:
            await self.log.closed()
        had_begun_in_background = self.is_background and len(self.log) > 0
        if self.error is not None and not had_begun_in_background:
            raise self.error
        return self.response

    async def follow(self, after: int = -1) -> AsyncGenerator[Sequence[bytes], None]:
        """Yields the encoded events numbered above `after`, in lists.

        Raises the error of the run at the end if the response has no last event.
        """
        async with aclosing(self.log.follow(after)) as following:
            async for events in following:
                yield events
        if self.error is not None and self._stage is not Stage.ENDED:
            raise self.error

    def steer(self) -> None:
        """Ends the response after the item that the model is writing."""
        self._builder.ends_after_item = True

    def cancel(self) -> None:
        self._stop_generating(_Stop.CANCEL)

    def leave(self) -> None:
        """Stops the run because the server shuts down.

        A response that runs fails; a queued response stays in the store for another server.
        """
        if self._progress is not None:
            self._progress.hurry()
        self._stop_generating(self._stop or _Stop.LEAVE)

    def _stop_generating(self, stop: _Stop) -> None:
        self._stop = stop
        if self._generating is not None:
            self._generating.cancel()

    def _enter(self, stage: Stage) -> None:
        self._stage = step(self._stage, stage)
        logger.debug("response %s is %s", self.id, stage.value)

    async def _make(self) -> None:
        if self.is_background:
            begin_span()
        try:
            with self._place:
                async with self._closing_tools():
                    is_whole = await self._generate()
            await self._end(is_whole=is_whole)
        except STOPS:
            raise
        except BaseException as error:
            # Broad: no caller awaits this task, and followers must not wait for ever.
            await self._fail(error)
        finally:
            self.log.close()
            if self.is_background:
                log_end(self.response, self.generation, self.error)

    async def _begin(self) -> None:
        events: list[bytes] = []
        if self.is_background and not self.log:
            events += map(_encode, self._builder.queue())
        if self._progress is not None:
            await self._progress.begin(self._builder.response, events)
        self.log.add(events)
        if self.is_background:
            self._enter(Stage.QUEUED)

    async def _generate(self) -> bool:
        """Runs the generation to its end; returns False if the generation was stopped before."""
        async with self._cancellable(self._advance_to_the_end()) as advancing:
            # The store gets the response while the engine computes the prompt.
            await self._begin()
            if await _comes(self._may_begin, advancing) and await self._begin_to_run():
                self._has_begun.set()
                await self._tell_the_store(advancing)
        if advancing.cancelled():
            return False
        advancing.result()  # raises the error of the task, if it failed
        return True

    @asynccontextmanager
    async def _cancellable(
        self, work: Coroutine[None, None, None]
    ) -> AsyncIterator[asyncio.Task[None]]:
        """Runs `work` in a task that `cancel` and `leave` can stop, until the block is left."""
        self._generating = task = asyncio.create_task(work)
        if self._stop is not None:
            task.cancel()
        try:
            yield task
        finally:
            task.cancel()  # the task is already done unless the block failed
            await asyncio.wait({task})

    @asynccontextmanager
    async def _closing_tools(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if self._loop is not None:
                await self._loop.tools.close()

    async def _begin_to_run(self) -> bool:
        """Enters RUNNING; returns False if another server has taken a queued response."""
        if self._progress is not None and self.is_background:
            queued = self.response
            beginning = self._builder.go_on() if self._is_begun else self._builder.begin()
            events = [_encode(event) for event in beginning]
            if not await self._progress.note(lambda: self._builder.snapshot, events):
                # No client has seen the start, so the response goes back to queued.
                self._builder = ResponseBuilder.resume(queued, len(self.log))
                self.cancel()
                return False
            self.log.add(events)
        else:
            self.log.add(self._builder.begin())
        self._enter(Stage.RUNNING)
        return True

    async def _advance_to_the_end(self) -> None:
        loop = self._loop
        if loop is None:
            await self._take_turn(self._first_turn)
            return
        if self._is_begun or loop.begins_with_calls:
            self._has_output.set()
            self._first_turn.accepted.set()
            await self._has_begun.wait()
            if self._is_begun:
                await loop.resume_calls(self._builder)
            else:
                await loop.run_first_calls(self._builder)
        else:
            await self._take_turn(self._first_turn)
            if self._builder.is_steered or not await loop.run_calls(self._builder):
                return
        while (turn := await loop.make_turn(self._builder)) is not None:
            await self._take_turn(turn)
            if self._builder.is_steered or not await loop.run_calls(self._builder):
                return

    async def _take_turn(self, turn: Generation) -> None:
        async with aclosing(turn.events()) as steps:
            await self._advance_steps(steps)

    async def _advance_steps(self, steps: AsyncGenerator[list[Event], None]) -> None:
        # The events of several choices are held until the end, then sorted by choice.
        held: list[Event] = []
        events: list[Event] = await anext(steps, [])
        self._has_output.set()
        await self._has_begun.wait()
        while events and not self._builder.is_steered:
            if self._generates and self.generation.request.n > 1:
                held += events
            elif self._generates:
                self._advance(events)
            events = await anext(steps, [])
        held.sort(key=lambda event: event.index)
        for start in range(0, len(held), _MAX_EVENTS_AT_ONCE):
            self._advance(held[start : start + _MAX_EVENTS_AT_ONCE])
            await asyncio.sleep(0)

    def _advance(self, events: Iterable[Event]) -> None:
        self.log.add([made for event in events for made in self._builder.advance(event)])

    async def _tell_the_store(self, making: asyncio.Task[None]) -> None:
        if self._progress is None:
            await asyncio.wait({making})
        else:
            await self._progress.keep_up(making, lambda: self.response)

    async def _end(self, *, is_whole: bool) -> None:
        if not is_whole and self._stop is _Stop.LEAVE:
            raise EngineUnavailable("the server is shutting down", retry_after_s=1.0)
        if not is_whole:
            await self._finish(self._builder.cancel())
        elif self._builder.is_steered:
            await self._finish(self._builder.steer(self.generation.usage()))
        else:
            await self._finish(self._builder.complete(self.generation.usage()))

    async def _fail(self, error: BaseException) -> None:
        if not isinstance(error, OuzelError):
            logger.error("unexpected error", exc_info=error)
        self.error = error
        if isinstance(error, StoreUnavailable):
            logger.error("response %s could not be stored: %s", self.id, error)
            self._enter(Stage.LOST)
            return
        try:
            if self._stage is Stage.NEW:
                await self._refuse()
            elif self._stage is Stage.QUEUED and isinstance(error, EngineUnavailable):
                self._enter(Stage.LEFT)
            else:
                # The builder may have stopped in the middle of an event.
                self._builder = ResponseBuilder.resume(self.response, len(self.log))
                await self._finish(self._builder.fail(response_error(error)))
        except StoreUnavailable as store_error:
            logger.error("the end of response %s could not be stored: %s", self.id, store_error)
            self._enter(Stage.LOST)

    async def _refuse(self) -> None:
        if self._progress is not None:
            await self._progress.drop()
        self._enter(Stage.REFUSED)

    async def _finish(self, final: Iterable[ResponseEvent]) -> None:
        self._before_end = self.response
        self._enter(Stage.ENDING)
        last = list(final)
        encoded = [_encode(event) for event in last]
        ended: ResponseObject | None = None
        if self._progress is not None:
            ended = await self._progress.end(self._builder.response, encoded)
        if ended is not None:  # another server has ended the response before
            self._builder = ResponseBuilder.resume(ended, len(self.log))
            encoded[-1] = _encode(end_event(last[-1].sequence_number, ended))
        self._enter(Stage.ENDED)
        self.log.add(encoded)


def response_error(error: BaseException) -> ResponseError:
    if not isinstance(error, OuzelError):
        return ResponseError("server_error", UNEXPECTED)
    return ResponseError("invalid_prompt" if error.is_clients else "server_error", str(error))


async def _comes(event: asyncio.Event, task: asyncio.Task[None]) -> bool:
    """Waits for the event or the end of the task; returns whether the event is set."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return event.is_set()
