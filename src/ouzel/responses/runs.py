"""Manages the runs of this server and takes over responses that other servers have abandoned.

A server that stops, dies or cannot reach the store abandons its responses. `watch` settles them:

1.  An abandoned response that was running goes on here if it has tools that this server runs. Any
    other such response fails; the server that finds it writes the failure.
2.  An abandoned response that was queued runs here.
3.  A response of this server that another server has cancelled or deleted stops.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import msgspec

from ouzel.errors import STOPS, OuzelError, TryLater
from ouzel.generation import Generation
from ouzel.responses.event_log import EventLog
from ouzel.responses.preparer import PreparedResponse, Preparer
from ouzel.responses.response_object import ResponseError, ResponseObject
from ouzel.responses.run import Run, response_error
from ouzel.responses.stored.end_stored import fail_stored
from ouzel.responses.stored_progress import StoredProgress, decode_response
from ouzel.store.base import Store
from ouzel.store.errors import StoreUnavailable
from ouzel.store.records import NewResponse, Status, StoredResponse

logger = logging.getLogger(__name__)

_WATCH_EVERY_S = 0.5
_BEAT_EVERY_S = 2.0
_TAKE_OVER_EVERY_S = 2.0
_SWEEP_EVERY_S = 600.0
_ABANDONED = (
    "the server stopped, or could not reach its store, while it made this response; the output "
    "up to then is stored"
)


class Runs:
    def __init__(self, preparers: Callable[[], Sequence[Preparer]], store: Store | None) -> None:
        """`preparers` returns the preparers of the models that are served now."""
        self.store = store
        self._preparers = preparers
        self._runs: dict[str, Run] = {}
        # Ids of responses that this server owns in the store but does not run.
        self._left_ids: set[str] = set()

    @contextmanager
    def running(
        self, prepared: PreparedResponse, *, key_id: str | None, place: ExitStack
    ) -> Iterator[Run]:
        """Starts a run; the end of the block cancels it, unless it runs in the background."""
        run = self.start(prepared, key_id=key_id, place=place.pop_all())
        try:
            yield run
        finally:
            if not run.is_background:
                run.cancel()

    def start(self, prepared: PreparedResponse, *, key_id: str | None, place: ExitStack) -> Run:
        """Starts a run, which takes over `place`, the admission of the request to the engine."""
        log = EventLog()
        progress: StoredProgress | None = None
        if self.store is not None and prepared.response.store:
            new = _new_response(prepared, key_id)
            begins_at_once = (
                prepared.is_stream or new.is_background or new.conversation_id is not None
            )
            progress = StoredProgress(
                self.store, new.id, key_id, log, new=new, begins_at_once=begins_at_once
            )
        return self._run(prepared, place, log, progress, key_id=key_id)

    def find(self, response_id: str, key_id: str | None) -> Run | None:
        """Returns the run of a response of this key, stored or not; None if none runs here."""
        run = self._runs.get(response_id)
        return run if run is not None and run.key_id == key_id else None

    @property
    def in_background(self) -> list[Run]:
        """Returns the runs of responses that are made in the background."""
        return [run for run in self._runs.values() if run.is_background]

    async def watch(self) -> None:
        """Renews the lease, stops runs that ended elsewhere, and takes over abandoned responses.

        Runs until it is cancelled.
        """
        if self.store is None:
            return
        store = self.store
        # Each work has its own task, so that a slow one does not delay the lease.
        async with asyncio.TaskGroup() as group:
            group.create_task(_repeat(partial(self._beat, store), every_s=_BEAT_EVERY_S))
            group.create_task(_repeat(partial(self._stop_ended, store), every_s=_WATCH_EVERY_S))
            group.create_task(_repeat(partial(self._take_over, store), every_s=_TAKE_OVER_EVERY_S))
            group.create_task(_repeat(store.sweep, every_s=_SWEEP_EVERY_S))

    async def drain(self, timeout_s: float) -> None:
        """Stops the admission of requests and waits until running responses have ended.

        Waits `timeout_s` at most; a response has ended when the store has its end.
        """
        loop = asyncio.get_running_loop()
        latest_s = loop.time() + timeout_s
        engines = {preparer.model.engine for preparer in self._preparers()}
        await asyncio.gather(*(engine.drain(timeout_s) for engine in engines))
        if self._runs:
            await asyncio.wait(
                [run.task for run in self._runs.values()], timeout=max(latest_s - loop.time(), 0)
            )

    async def close(self) -> None:
        """Stops all runs and waits for their ends; the engines must have stopped before."""
        for run in self._runs.values():
            run.leave()
        if self._runs:
            await asyncio.wait([run.task for run in self._runs.values()])

    def _run(
        self,
        prepared: PreparedResponse,
        place: ExitStack,
        log: EventLog,
        progress: StoredProgress | None,
        *,
        key_id: str | None,
        begun: ResponseObject | None = None,
    ) -> Run:
        generation = Generation(prepared.request, prepared.model, prepared.metrics, key_id=key_id)
        run = Run(
            prepared, generation, place, log=log, progress=progress, key_id=key_id, begun=begun
        )
        self._runs[run.id] = run
        run.task.add_done_callback(lambda _: self._forget(run))
        return run

    def _forget(self, run: Run) -> None:
        del self._runs[run.id]
        if not run.is_settled:
            self._left_ids.add(run.id)

    async def _beat(self, store: Store) -> None:
        if self._runs or self._left_ids:
            await store.beat()

    async def _stop_ended(self, store: Store) -> None:
        """Cancels the runs of responses that another server has ended or deleted."""
        ids = [run.id for run in self._runs.values() if run.is_stored]
        for response_id in await store.ended(ids) if ids else ():
            run = self._runs.get(response_id)
            if run is not None:
                run.cancel()

    async def _take_over(self, store: Store) -> None:
        if self._left_ids:
            released = set(self._left_ids)
            await store.release(released)
            self._left_ids -= released
        abandoned = await store.take_abandoned()
        await self._settle(abandoned, partial(self._settle_left, store))
        for preparer in self._preparers():
            num_free = preparer.model.engine.num_free
            queued = await store.take_queued(preparer.model.names, num_free) if num_free else []
            await self._settle(queued, partial(self._run_again, store, preparer))

    async def _settle(
        self, responses: list[StoredResponse], settle: Callable[[StoredResponse], Awaitable[object]]
    ) -> None:
        """Calls `settle` for each abandoned response.

        If `settle` raises TryLater, this response and the following ones stay in `_left_ids`:
        `_take_over` later releases them for another server.
        """
        self._left_ids.update(response.id for response in responses)
        for response in responses:
            self._left_ids.remove(response.id)
            try:
                await settle(response)
            except TryLater:
                self._left_ids.add(response.id)
                raise

    async def _settle_left(self, store: Store, stored: StoredResponse) -> None:
        """Goes on with a response that another server has left in the middle, or fails it.

        Only a response with tools that this server runs goes on: its output consists of whole
        items, from which the next turn of the model can begin.
        """
        preparer = self._find_preparer(stored)
        if preparer is None or stored.request is None or stored.status is Status.QUEUED:
            await self._fail_left(store, stored)
            return
        begun = decode_response(stored)
        if not any(preparer.hosted.find(tool.get("type")) for tool in begun.tools):
            await self._fail_left(store, stored)
            return
        logger.info("response %s goes on here: its server abandoned it", stored.id)
        await self._run_again(store, preparer, stored, begun)

    def _find_preparer(self, stored: StoredResponse) -> Preparer | None:
        """Returns the preparer of the model that makes the response; None if it is not served."""
        return next((each for each in self._preparers() if stored.model in each.model.names), None)

    async def _fail_left(self, store: Store, stored: StoredResponse) -> None:
        logger.warning("response %s failed: its server abandoned it while it ran", stored.id)
        await fail_stored(store, stored, ResponseError("server_error", _ABANDONED))

    async def _run_again(
        self,
        store: Store,
        preparer: Preparer,
        stored: StoredResponse,
        begun: ResponseObject | None = None,
    ) -> None:
        """Prepares and runs a response that another server has abandoned, queued or in its middle.

        `begun` is the state of a response in its middle.
        Raises TryLater if the engine or the store cannot take the response now.
        """
        assert stored.request is not None
        if begun is None:
            logger.info("response %s runs now: its server abandoned it in the queue", stored.id)
        with ExitStack() as place, preparer.use_files(stored.key_id):
            try:
                place.enter_context(preparer.model.engine.admit())
                prepared = await preparer.prepare(
                    stored.request,
                    key_id=stored.key_id,
                    arrival_s=time.perf_counter(),
                    queued=stored,
                )
            except TryLater:
                raise
            except OuzelError as error:  # the response to continue may be deleted by now
                await fail_stored(store, stored, response_error(error))
                return
            log = EventLog(await store.events(stored.id, stored.key_id, after=-1))
            progress = StoredProgress(store, stored.id, stored.key_id, log)
            self._run(prepared, place.pop_all(), log, progress, key_id=stored.key_id, begun=begun)


async def _repeat(work: Callable[[], Awaitable[object]], *, every_s: float) -> None:
    while True:
        try:
            await work()
        except StoreUnavailable as error:  # the store logs the reason, and only once
            logger.debug("stored responses: %s", error)
        except TryLater as error:
            logger.warning("stored responses: %s", error)
        except STOPS:
            raise
        except BaseException:
            # Broad: no caller awaits this, and a server without a lease loses its responses.
            logger.exception("unexpected error")
        await asyncio.sleep(every_s)


def _new_response(prepared: PreparedResponse, key_id: str | None) -> NewResponse:
    response, context = prepared.response, prepared.context
    return NewResponse(
        id=response.id,
        key_id=key_id,
        model=response.model,
        status=Status(response.status),
        is_background=response.background,
        previous_response_id=response.previous_response_id if context.has_stored_earlier else None,
        conversation_id=None if response.conversation is None else response.conversation.id,
        body=msgspec.json.encode(response),
        request=prepared.body,
        last_item_read=context.last_item_read,
        input_items=prepared.input_items,
        events=(),
    )
