"""Work that takes longer than a moment runs beside the event loop, in threads of its own for each kind.

So nothing waits behind what takes long but its own kind; asyncio's own threads are for what is short.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from ouzel.errors import Overloaded

LONG_BODY_BYTES = 1024  # what is made of a shorter one takes less than a moment
_VERY_LONG_BODY_BYTES = 256 * 2**10
_RETRY_AFTER_S = 1.0

Parsed = TypeVar("Parsed")
Result = TypeVar("Result")


class PrerequisiteMissing(Exception):
    """Work raises it that cannot be done yet, because something must be waited for."""

    def provide_prerequisite(self) -> AbstractAsyncContextManager[None]:
        """Gets what is missing, for the work that runs within."""
        raise NotImplementedError


async def run_with_prerequisite(work: Callable[[], Awaitable[Result]]) -> Result:
    """Does work that may need something first, and with that something else."""
    try:
        return await work()
    except PrerequisiteMissing as missing:
        async with missing.provide_prerequisite():
            return await run_with_prerequisite(work)


class WorkerThreads:
    """Belongs to one event loop. Work that nobody waits for any more is dropped, unless it has begun."""

    def __init__(self, kind: str, max_threads: int, *, max_waiting: int | None = None) -> None:
        """`kind` is what the work is about; one more than `max_waiting` is refused."""
        self._kind = kind
        self._max_waiting = max_waiting
        self._num_waiting = 0
        self._free = asyncio.Semaphore(max_threads)
        self._executor = ThreadPoolExecutor(max_threads, thread_name_prefix=kind.replace(" ", "-"))

    async def run(self, work: Callable[[], Result]) -> Result:
        """Raises Overloaded."""
        return await run_with_prerequisite(partial(self._run, work))

    async def _run(self, work: Callable[[], Result]) -> Result:
        await self._wait()
        loop = asyncio.get_running_loop()
        running = self._executor.submit(copy_context().run, work)

        def leave(_: Future[Result]) -> None:
            with suppress(RuntimeError):  # the loop has been closed
                loop.call_soon_threadsafe(self._free.release)

        running.add_done_callback(leave)  # not when its client leaves: the thread works on
        try:
            return await asyncio.wrap_future(running)
        finally:
            del (
                running
            )  # an error that leaves here would hold itself, and with it all that the work has read

    async def _wait(self) -> None:
        if self._free.locked() and self._num_waiting == self._max_waiting:
            limit = f"{self._max_waiting} requests wait for it already"
            raise Overloaded(
                f"the server has too much to do with {self._kind}: {limit}",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._num_waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._num_waiting -= 1

    def close(self) -> None:
        """What runs is not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)


async def run_here(work: Callable[[], Result]) -> Result:
    """Does what takes less than a moment, but may need something first."""

    async def do() -> Result:
        return work()

    return await run_with_prerequisite(do)


class PreparationThreads:
    """Requests are prepared here: short ones at once, and very long ones and programs of clients apart from others."""

    def __init__(self) -> None:
        self._long = WorkerThreads("prompts", 4)
        self._very_long = WorkerThreads("long prompts", 2)
        self._programs = WorkerThreads("chat templates of requests", 2, max_waiting=64)

    async def run(
        self, work: Callable[[], Result], num_bytes: int, *, has_own_template: bool = False
    ) -> Result:
        """`num_bytes` is how long the request is. Raises Overloaded."""
        if has_own_template:
            return await self._programs.run(work)
        if num_bytes <= LONG_BODY_BYTES:
            return await run_here(work)
        return await (self._very_long if num_bytes > _VERY_LONG_BODY_BYTES else self._long).run(
            work
        )

    async def prepare(
        self,
        parse: Callable[[], Parsed],
        prepare: Callable[[Parsed], Result],
        num_bytes: int,
        *,
        has_own_template: Callable[[Parsed], bool],
    ) -> Result:
        """Does both in one turn, so that requests wait as bytes: what they are parsed to is many times longer.

        A request's bytes do not tell whether it has a template. One that has is parsed again where those run.
        """

        def parse_and_prepare(*, runs_templates: bool) -> tuple[Result] | None:
            parsed = parse()
            return (prepare(parsed),) if runs_templates or not has_own_template(parsed) else None

        done = await self.run(partial(parse_and_prepare, runs_templates=False), num_bytes)
        if done is None:
            done = await self._programs.run(partial(parse_and_prepare, runs_templates=True))
        assert done is not None
        return done[0]

    async def run_long(self, work: Callable[[], Result]) -> Result:
        return await self._very_long.run(work)

    def close(self) -> None:
        for threads in (self._long, self._very_long, self._programs):
            threads.close()
