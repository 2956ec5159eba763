"""The event loop of the client, and of an engine's front, runs beside the main thread.

The main thread is plain Python: there Ctrl-C reaches a tool that runs, and an answer that is drawn holds up nobody.
"""

import asyncio
import threading
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, TypeVar  # a coroutine's other types

Result = TypeVar("Result")


class LoopThread:
    """Is used as a context, in which its loop runs."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="client", daemon=True)

    def __enter__(self) -> "LoopThread":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def begin(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Waits for it; cancels it where the wait is interrupted."""
        future = self.begin(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @contextmanager
    def entered(
        self, context: AbstractAsyncContextManager[Result]
    ) -> Generator[Result, None, None]:
        """Is the same context for the main thread."""
        opening = self.begin(_begun(context))
        try:
            value = self.run(_result_of(opening))
        except BaseException:
            self.run(_ended(opening))
            raise
        try:
            yield value
        finally:
            self.run(_left(context))


async def _begun(context: AbstractAsyncContextManager[Result]) -> asyncio.Task[Result]:
    return asyncio.create_task(_entered(context))


async def _entered(context: AbstractAsyncContextManager[Result]) -> Result:
    return await context.__aenter__()


async def _result_of(beginning: Future[asyncio.Task[Result]]) -> Result:
    """Leaves the task as it is where nobody waits any more."""
    task = await asyncio.shield(asyncio.wrap_future(beginning))
    await asyncio.wait((task,))
    return task.result()


async def _ended(beginning: Future[asyncio.Task[Any]]) -> None:
    """Waits until the task has taken back what it had begun."""
    task = await asyncio.wrap_future(beginning)
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()  # is known, or no longer of interest


async def _left(context: AbstractAsyncContextManager[Result]) -> None:
    await context.__aexit__(None, None, None)
