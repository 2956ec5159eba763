"""A log holds the events of one response, numbered from 0, for its followers and the store."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence

import msgspec

from ouzel.responses.event_base import ResponseEvent

_encode = msgspec.json.Encoder().encode


class EventLog:
    def __init__(self, events: Iterable[bytes] = ()) -> None:
        """`events` are the events that the store already has."""
        # An event becomes bytes (JSON) when it is read for the first time.
        self._events: list[ResponseEvent | bytes] = list(events)
        self._is_closed = False
        # set and replaced by a new one at every change
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._events)

    def add(self, events: Iterable[ResponseEvent | bytes]) -> None:
        assert not self._is_closed
        self._events += events
        self._wake()

    def close(self) -> None:
        """Tells all followers that no event follows."""
        self._is_closed = True
        self._wake()

    def encoded(self, start: int) -> list[bytes]:
        """Returns the events from number `start` on as JSON.

        Events are encoded here and not in `add`, because many events are never read.
        """
        for number in range(start, len(self._events)):
            event = self._events[number]
            if not isinstance(event, bytes):
                self._events[number] = _encode(event)
        return [event for event in self._events[start:] if isinstance(event, bytes)]

    async def follow(self, after: int) -> AsyncGenerator[Sequence[bytes], None]:
        """Yields the events numbered above `after`, in lists, until the log is closed.

        Each list has all events that were added since the last list.
        """
        start = after + 1
        while True:
            while start >= len(self._events) and not self._is_closed:
                await self._changed.wait()
            if start >= len(self._events):
                return
            events = self.encoded(start)
            start += len(events)
            yield events

    async def begun(self) -> None:
        """Waits until the log has an event or is closed without one."""
        while not self._events and not self._is_closed:
            await self._changed.wait()

    async def closed(self) -> None:
        while not self._is_closed:
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
