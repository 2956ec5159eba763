"""Runs the event loop of the client, or of an app in this process, in a thread of its own.

The main thread is plain Python. Ctrl-C therefore reaches a running tool, and slow drawing of an
answer does not block the loop.
"""

import asyncio
import threading
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, TypeVar  # Any: the send and yield types of coroutines

Result = TypeVar("Result")


class LoopThread:
    """Runs an event loop in a thread while its context is entered."""

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
        """Runs a coroutine in the loop and waits for the result.

        An interruption of the wait cancels the coroutine.
        """
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
        """Enters an asynchronous context in the loop, for use as a plain context."""
        opening = self.begin(_start_entering(context))
        try:
            value = self.run(_wait_for_result(opening))
        except BaseException:
            self.run(_cancel(opening))
            raise
        try:
            yield value
        finally:
            self.run(_leave(context))


async def _start_entering(context: AbstractAsyncContextManager[Result]) -> asyncio.Task[Result]:
    return asyncio.create_task(_enter(context))


async def _enter(context: AbstractAsyncContextManager[Result]) -> Result:
    return await context.__aenter__()


async def _wait_for_result(opening: Future[asyncio.Task[Result]]) -> Result:
    """Waits for the task; a cancellation of the wait leaves the task running."""
    task = await asyncio.shield(asyncio.wrap_future(opening))
    await asyncio.wait((task,))
    return task.result()


async def _cancel(opening: Future[asyncio.Task[Any]]) -> None:
    """Cancels the task and waits until it has cleaned up."""
    task = await asyncio.wrap_future(opening)
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()  # marks the exception as seen


async def _leave(context: AbstractAsyncContextManager[Result]) -> None:
    await context.__aexit__(None, None, None)
