"""A log holds the events of one response, numbered from 0, for everyone who follows them and for the store."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence

import msgspec

from ouzel.responses.events import ResponseEvent

_encode = msgspec.json.Encoder().encode


class EventLog:
    def __init__(self, events: Iterable[bytes] = ()) -> None:
        """Begins with the events that a store has."""
        self._events: list[ResponseEvent | bytes] = list(
            events
        )  # bytes once somebody has wanted them
        self._is_closed = False
        self._changed = asyncio.Event()  # set, and replaced, at every change

    def __len__(self) -> int:
        return len(self._events)

    def add(self, events: Iterable[ResponseEvent | bytes]) -> None:
        assert not self._is_closed
        self._events += events
        self._wake()

    def close(self) -> None:
        """Tells everyone that nothing follows."""
        self._is_closed = True
        self._wake()

    def encoded(self, start: int) -> list[bytes]:
        """Returns events from number `start` on as JSON, which is made only now: many events are never read."""
        for number in range(start, len(self._events)):
            event = self._events[number]
            if not isinstance(event, bytes):
                self._events[number] = _encode(event)
        return [event for event in self._events[start:] if isinstance(event, bytes)]

    async def follow(self, after: int) -> AsyncGenerator[Sequence[bytes], None]:
        """Gives the events numbered above `after` until the log is closed, at each wake-up all that are new."""
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
        """Waits until there is an event, or never will be."""
        while not self._events and not self._is_closed:
            await self._changed.wait()

    async def closed(self) -> None:
        while not self._is_closed:
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
