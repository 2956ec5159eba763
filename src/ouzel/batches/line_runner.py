"""Runs the lines of batches that this server has taken, and writes their results.

Rules
1. A line that this server has taken is in `_tasks` while it runs, then in `_unwritten` until its
   result is stored. A line that is stopped is released in the store.
2. The server's own "try again later" (429, 503) is no result: the line waits and is sent again. So
   is, a few times, a line that was lost to a fault of the engine.
3. A line is prepared in a turn of the event loop of its own: requests of users wait for one line.
4. Results are written in groups, each as soon as the group before is written.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import partial
from http import HTTPStatus

from ouzel.batches.line_app import LineAnswer, LineApp
from ouzel.batches.results import make_result
from ouzel.errors import STOPS
from ouzel.store.batches.base import BatchStore
from ouzel.store.batches.records import Line, LineResult, StoredBatch
from ouzel.store.errors import StoreUnavailable

logger = logging.getLogger(__name__)

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_MAX_FAULTS = 2  # further faults of the engine are the line's result
_WRITE_AGAIN_S = 1.0
_MAX_UNWRITTEN = 2000

_Key = tuple[str, int]  # id of the batch, position of the line


class LineRunner:
    def __init__(self, app: LineApp, store: BatchStore, *, on_written: Callable[[], None]) -> None:
        """`on_written` is called when results were written: there may be free places."""
        self._app = app
        self._store = store
        self._on_written = on_written
        self._tasks: dict[_Key, asyncio.Task[None]] = {}
        self._models: Counter[str] = Counter()  # running lines by model
        self._unwritten: list[tuple[str, LineResult]] = []
        self._has_results = asyncio.Event()
        self._starting = asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """Tells whether this server owns lines in the store."""
        return bool(self._tasks or self._unwritten)

    def num_running(self, model: str) -> int:
        """Counts the running lines of a model."""
        return self._models[model]

    @property
    def takes_lines(self) -> bool:
        """Tells whether lines may be started; not while the store takes no results."""
        return len(self._unwritten) < _MAX_UNWRITTEN

    def num_of_batch(self, batch_id: str) -> int:
        """Counts the running lines of a batch."""
        return sum(key[0] == batch_id for key in self._tasks)

    def positions(self, batch_id: str) -> set[int]:
        """Returns the lines of a batch that run here, or wait for their results to be written."""
        running = {position for each, position in self._tasks if each == batch_id}
        return running | {each.position for owner, each in self._unwritten if owner == batch_id}

    def owns_lines(self, batch_id: str) -> bool:
        """Tells whether lines of a batch run here, or wait for their results to be written."""
        return any(key[0] == batch_id for key in self._tasks) or any(
            each == batch_id for each, _ in self._unwritten
        )

    def start(self, batch: StoredBatch, lines: Iterable[Line]) -> None:
        """Starts lines that this server has taken."""
        assert batch.model is not None
        for line in lines:
            task = asyncio.create_task(self._run(batch, line), name=f"line of {batch.id}")
            self._tasks[batch.id, line.position] = task
            self._models[batch.model] += 1
            task.add_done_callback(partial(self._forget, batch, line))

    async def stop_others(self, batch_ids: Collection[str]) -> None:
        """Stops and releases all lines except the lines of the given batches."""
        stopped: dict[str, list[int]] = {}
        waiting = []
        for (batch_id, position), task in self._tasks.items():
            if batch_id not in batch_ids:
                stopped.setdefault(batch_id, []).append(position)
                task.cancel()
                waiting.append(task)
        if waiting:
            await asyncio.wait(waiting)
        for batch_id, positions in stopped.items():
            finished = {each.position for owner, each in self._unwritten if owner == batch_id}
            await self._store.release_lines(batch_id, set(positions) - finished)

    async def write_results(self) -> None:
        """Writes results as they come. Runs until it is cancelled."""
        while True:
            await self._has_results.wait()
            try:
                await self.write_now()
            except StoreUnavailable as error:  # the store logs the reason, and only once
                logger.debug("results of batches: %s", error)
                await asyncio.sleep(_WRITE_AGAIN_S)

    async def write_now(self) -> None:
        """Writes the results of all lines that have ended. Raises StoreUnavailable."""
        self._has_results.clear()
        results, num_left = self._unwritten[:], len(self._unwritten)
        by_batch: dict[str, list[LineResult]] = {}
        for batch_id, result in results:
            by_batch.setdefault(batch_id, []).append(result)
        try:
            for batch_id, group in by_batch.items():
                await self._store.finish_lines(batch_id, group)
        except BaseException:
            self._has_results.set()  # a result that is written twice changes nothing
            raise
        del self._unwritten[:num_left]
        self._on_written()

    def _forget(self, batch: StoredBatch, line: Line, task: asyncio.Task[None]) -> None:
        del self._tasks[batch.id, line.position]
        assert batch.model is not None
        self._models[batch.model] -= 1

    async def _run(self, batch: StoredBatch, line: Line) -> None:
        try:
            async with self._starting:
                await asyncio.sleep(0)
            answer = await self._ask(batch, line)
            self._unwritten.append((batch.id, make_result(batch.dialect, line, answer)))
            self._has_results.set()
        except STOPS:
            raise
        except BaseException:
            # Broad: nobody awaits this task. The line stays owned until the server ends.
            logger.exception("a line of the batch %s failed unexpectedly", batch.id)

    async def _ask(self, batch: StoredBatch, line: Line) -> LineAnswer:
        """Returns the answer to a line, after as many tries as it needs."""
        num_faults, wait_s = 0, _FIRST_WAIT_S
        while True:
            answer = await self._app.ask(batch.endpoint, line.body, key_id=batch.key_id)
            is_fault = answer.status == HTTPStatus.INTERNAL_SERVER_ERROR
            num_faults += is_fault
            if answer.retry_after_s is None and not (is_fault and num_faults <= _MAX_FAULTS):
                return answer
            await asyncio.sleep(max(answer.retry_after_s or 0.0, wait_s))
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
