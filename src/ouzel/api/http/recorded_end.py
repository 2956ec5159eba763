"""Tells the request log how a stream of work ended."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

Event = TypeVar("Event")


async def record_end(
    events: AsyncGenerator[Event, None], record: Callable[[str], object]
) -> AsyncGenerator[Event, None]:
    """Yields the events; at the end it records `stop`, `error`, or `abort` if it was closed early.

    Closing the generator closes the events.
    """
    reason = "abort"
    try:
        async with aclosing(events):
            async for event in events:
                yield event
        reason = "stop"
    except Exception:
        reason = "error"
        raise
    finally:
        record(reason)
