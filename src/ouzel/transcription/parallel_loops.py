"""Runs window loops at the same time and yields their events in the order of the loops."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from ouzel.transcription.events import SegmentDone, TextDelta

Emit = Callable[[TextDelta | SegmentDone], None]
# runs one loop, which emits its events
RunLoop = Callable[[Emit], Awaitable[None]]

_Events = asyncio.Queue[TextDelta | SegmentDone | None]  # None: the loop has ended


async def run_loops(
    loops: Sequence[RunLoop], max_running: int
) -> AsyncGenerator[TextDelta | SegmentDone, None]:
    """Yields all events of the first loop, then of the second, and so on.

    Raises the first failure in the order of the loops. Closing the generator cancels all loops.
    """
    places = asyncio.Semaphore(max_running)
    queues: list[_Events] = [asyncio.Queue() for _ in loops]
    tasks = [
        asyncio.create_task(_run(loop, queue, places))
        for loop, queue in zip(loops, queues, strict=True)
    ]
    try:
        for task, queue in zip(tasks, queues, strict=True):
            while (event := await queue.get()) is not None:
                yield event
            await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(loop: RunLoop, queue: _Events, places: asyncio.Semaphore) -> None:
    try:
        async with places:
            await loop(queue.put_nowait)
    finally:
        queue.put_nowait(None)
