"""Runs work that takes longer than a moment in threads beside the event loop, a pool for each kind.

So long work delays only work of its own kind. Short work uses asyncio's own threads.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from ouzel.errors import Overloaded

LONG_BODY_BYTES = 1024  # shorter bodies take less than a moment
_VERY_LONG_BODY_BYTES = 256 * 2**10
_RETRY_AFTER_S = 1.0

Parsed = TypeVar("Parsed")
Result = TypeVar("Result")


class PrerequisiteMissing(Exception):
    """Raised when work needs something that is not available yet."""

    num_bytes = 0  # bytes that the work reads besides; known when the prerequisite is provided

    def provide_prerequisite(self) -> AbstractAsyncContextManager[None]:
        """Provides the prerequisite while the work runs in this context."""
        raise NotImplementedError


async def run_with_prerequisite(work: Callable[[], Awaitable[Result]]) -> Result:
    """Runs `work`.

    When it raises `PrerequisiteMissing`, provides the prerequisite and runs it again.
    """
    try:
        return await work()
    except PrerequisiteMissing as missing:
        async with missing.provide_prerequisite():
            return await run_with_prerequisite(work)


class WorkerThreads:
    """Runs one kind of work for one event loop.

    Work is dropped if its caller left before it began.
    """

    def __init__(self, kind: str, max_threads: int, *, max_waiting: int | None = None) -> None:
        """`kind` names the work in errors; work beyond `max_waiting` is refused."""
        self._kind = kind
        self._max_waiting = max_waiting
        self._num_waiting = 0
        self._free = asyncio.Semaphore(max_threads)
        self._executor = ThreadPoolExecutor(max_threads, thread_name_prefix=kind.replace(" ", "-"))

    async def run(self, work: Callable[[], Result], *, is_short: bool = False) -> Result:
        """Runs `work` in a thread; short work runs on the event loop. Raises Overloaded.

        A long prerequisite makes short work long.
        """
        if not is_short:
            return await run_with_prerequisite(partial(self.run_once, work))
        try:
            return work()
        except PrerequisiteMissing as missing:
            async with missing.provide_prerequisite():
                return await self.run(work, is_short=missing.num_bytes <= LONG_BODY_BYTES)

    async def run_once(self, work: Callable[[], Result]) -> Result:
        """Runs `work` in a thread. Raises PrerequisiteMissing, and Overloaded."""
        await self._wait()
        loop = asyncio.get_running_loop()
        running = self._executor.submit(copy_context().run, work)

        def leave(_: Future[Result]) -> None:
            with suppress(RuntimeError):  # the event loop has been closed
                loop.call_soon_threadsafe(self._free.release)

        running.add_done_callback(leave)  # not when the client leaves: the thread still works
        try:
            return await asyncio.wrap_future(running)
        finally:
            # An error that leaves this frame would reference itself, with all data of the work.
            del running

    async def _wait(self) -> None:
        if self._free.locked() and self._num_waiting == self._max_waiting:
            limit = f"{self._max_waiting} requests already wait"
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
        """Drops waiting work; does not wait for running work."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class PreparationThreads:
    """Runs the preparation of requests: short ones on the event loop, others in three pools.

    The pools are for long requests, very long ones, and chat templates of clients.
    """

    def __init__(self) -> None:
        self._long = WorkerThreads("prompts", 4)
        self._very_long = WorkerThreads("long prompts", 2)
        self._programs = WorkerThreads("chat templates of requests", 2, max_waiting=64)

    async def run(
        self, work: Callable[[], Result], num_bytes: int, *, has_own_template: bool = False
    ) -> Result:
        """Runs `work` where a request of `num_bytes` belongs. Raises Overloaded."""
        if has_own_template:
            return await self._programs.run(work)
        try:
            return await self._run_once(work, num_bytes)
        except PrerequisiteMissing as missing:
            async with missing.provide_prerequisite():
                return await self.run(work, num_bytes + missing.num_bytes)

    async def _run_once(self, work: Callable[[], Result], num_bytes: int) -> Result:
        if num_bytes <= LONG_BODY_BYTES:
            return work()
        pool = self._very_long if num_bytes > _VERY_LONG_BODY_BYTES else self._long
        return await pool.run_once(work)

    async def prepare(
        self,
        parse: Callable[[], Parsed],
        prepare: Callable[[Parsed], Result],
        num_bytes: int,
        *,
        has_own_template: Callable[[Parsed], bool],
    ) -> Result:
        """Parses and prepares a request in one turn.

        So requests wait as bytes: the parsed form is many times larger. The bytes of a request do
        not show whether it has a template. A request with a template is parsed again in the pool
        for templates.
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
