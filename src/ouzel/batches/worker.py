"""Drives the batches of this server and of dead servers that shared its store.

Rules
1. `_look` reads the unfinished batches every second. A batch that is validated, finalized,
   cancelled or overdue has a task here (`_jobs`); the store lets one server do it.
2. `_fill` keeps as many lines running as the models have places for batches. Lines are taken in
   small portions, so that servers share a batch.
3. A stop interrupts the running lines: they are released, and run again elsewhere or after the
   restart. Results that are there are written first.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress

from ouzel.batches.ending import end_batch
from ouzel.batches.limits import MAX_AGE_S
from ouzel.batches.line_app import BatchFiles, LineApp
from ouzel.batches.line_runner import LineRunner
from ouzel.batches.validation import validate_batch
from ouzel.errors import STOPS, OuzelError
from ouzel.store.base import Store
from ouzel.store.batches.records import BatchStatus, Line, StoredBatch
from ouzel.store.errors import StoreUnavailable

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
_BEAT_EVERY_S = 2.0
_SWEEP_EVERY_S = 3600.0
_RETRY_AFTER_S = 30.0
_PORTION = 4  # lines are taken when this part of the places is free


class BatchWorker:
    def __init__(
        self,
        app: LineApp,
        files: BatchFiles,
        store: Store,
        *,
        look_every_s: float = _LOOK_EVERY_S,
        retry_after_s: float = _RETRY_AFTER_S,
    ) -> None:
        """Looks for batches and for lines to run every `look_every_s` seconds.

        `retry_after_s` is the time after which failed work on a batch is tried again.
        """
        self._app = app
        self._files = files
        self._store = store
        self._look_every_s = look_every_s
        self._retry_after_s = retry_after_s
        self._lines = LineRunner(app, store.batches, on_written=self._wake_up)
        self._running: list[StoredBatch] = []  # batches in progress, the oldest first
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._retry_at_s: dict[str, float] = {}  # after failed work, by batch
        self._unsure: set[str] = set()  # batches whose last taking of lines has failed
        self._wake = asyncio.Event()
        self._look_now = asyncio.Event()
        self._draining = asyncio.Event()

    def note_change(self) -> None:
        """Looks at the batches at once: a client has added or cancelled one."""
        self._look_now.set()

    async def watch(self) -> None:
        """Runs batches until it is cancelled."""
        every_s = self._look_every_s
        async with asyncio.TaskGroup() as group:
            group.create_task(_repeat(self._beat, every_s=_BEAT_EVERY_S))
            group.create_task(_repeat(self._look, every_s=every_s, hint=self._look_now))
            group.create_task(_repeat(self._fill, every_s=every_s, hint=self._wake))
            group.create_task(_repeat(self._sweep, every_s=_SWEEP_EVERY_S))
            group.create_task(self._lines.write_results())

    async def drain(self) -> None:
        """Stops the running lines and gives them back, so that other servers run them."""
        self._draining.set()
        for job in self._jobs.values():
            job.cancel()
        if self._jobs:
            await asyncio.wait(self._jobs.values())
        with suppress(StoreUnavailable):  # the leases end by themselves
            await self._lines.stop_others(())
            await self._lines.write_now()

    async def _beat(self) -> None:
        if self._lines.is_busy or self._jobs:
            await self._store.beat()

    async def _sweep(self) -> None:
        await self._store.batches.sweep(MAX_AGE_S)

    def _wake_up(self) -> None:
        self._wake.set()

    async def _look(self) -> None:
        if self._draining.is_set():
            return
        batches = await self._store.batches.unfinished()
        self._running = [batch for batch in batches if _is_running(batch)]
        self._unsure &= {batch.id for batch in batches}
        await self._lines.stop_others({batch.id for batch in self._running})
        for batch in batches:
            if batch.id in self._jobs or self._draining.is_set() or self._waits(batch):
                continue
            if batch.status is BatchStatus.VALIDATING and not batch.is_overdue:
                self._begin(batch, self._validate(batch))
            elif not _is_running(batch):
                self._begin(batch, self._end(batch))
        self._wake_up()

    def _waits(self, batch: StoredBatch) -> bool:
        """Tells whether the last work on a batch failed a short time ago."""
        return time.monotonic() < self._retry_at_s.get(batch.id, 0.0)

    def _begin(self, batch: StoredBatch, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name=f"work on {batch.id}")
        self._jobs[batch.id] = task
        task.add_done_callback(lambda _: self._jobs.pop(batch.id))

    async def _validate(self, batch: StoredBatch) -> None:
        with self._trying(batch):
            await validate_batch(batch, app=self._app, files=self._files, store=self._store.batches)
            self.note_change()

    async def _end(self, batch: StoredBatch) -> None:
        with self._trying(batch):
            if await end_batch(batch, files=self._files, store=self._store.batches):
                logger.info("batch %s has ended", batch.id)

    @contextmanager
    def _trying(self, batch: StoredBatch) -> Iterator[None]:
        """Lets failed work on a batch be tried again later."""
        self._retry_at_s[batch.id] = time.monotonic() + self._retry_after_s
        with _survived():
            yield
            del self._retry_at_s[batch.id]

    async def _fill(self) -> None:
        """Gives each batch an equal share of its model's places; the oldest takes the rest."""
        by_model: dict[str, list[StoredBatch]] = {}
        for batch in self._running:
            if batch.model is not None:
                by_model.setdefault(batch.model, []).append(batch)
        for model, batches in by_model.items():
            num_places = self._app.num_places(model)
            if not num_places:
                continue
            portion = max(num_places // (_PORTION * len(batches)), 1)
            share = num_places // len(batches)
            for limit in (share, num_places):
                for batch in batches:
                    num_free = min(
                        num_places - self._lines.num_running(model),
                        limit - self._lines.num_of_batch(batch.id),
                    )
                    if num_free >= portion:
                        await self._take(batch, num_free)

    async def _take(self, batch: StoredBatch, num_lines: int) -> None:
        """Takes lines and starts them; a batch without open lines goes on to its files."""
        if self._draining.is_set() or not self._lines.takes_lines:
            return
        lines = await self._take_lines(batch, num_lines)
        if self._draining.is_set():
            positions = [line.position for line in lines]
            await self._store.batches.release_lines(batch.id, positions)
            return
        self._lines.start(batch, lines)
        is_over = not lines and not self._lines.owns_lines(batch.id)
        if is_over and await self._store.batches.begin_finalizing(batch.id):
            self.note_change()

    async def _take_lines(self, batch: StoredBatch, num_lines: int) -> list[Line]:
        """Takes lines. If the last try has failed, the store may have given lines nevertheless."""
        batches = self._store.batches
        if batch.id in self._unsure:
            await batches.keep_lines(batch.id, self._lines.positions(batch.id))
        self._unsure.add(batch.id)
        lines = await batches.take_lines(batch.id, num_lines)
        self._unsure.discard(batch.id)
        return lines


def _is_running(batch: StoredBatch) -> bool:
    return batch.status is BatchStatus.IN_PROGRESS and not batch.is_overdue


@contextmanager
def _survived() -> Iterator[None]:
    """Logs the faults of a block: nobody awaits it, and its batch must not stay behind."""
    try:
        yield
    except StoreUnavailable as error:  # the store logs the reason, and only once
        logger.debug("batches: %s", error)
    except STOPS:
        raise
    except OuzelError as error:
        logger.warning("batches: %s", error)
    except BaseException:
        logger.exception("unexpected error in a batch")


async def _repeat(
    work: Callable[[], Awaitable[object]], *, every_s: float, hint: asyncio.Event | None = None
) -> None:
    """Calls `work` every `every_s` seconds, and when `hint` is set."""
    event = hint or asyncio.Event()
    while True:
        event.clear()
        with _survived():
            await work()
        with suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await event.wait()
