"""The events of one response, in order and numbered from 0, for everyone who follows them and for the store."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence

import msgspec

from ouzel.responses.events import ResponseEvent

_encode = msgspec.json.Encoder().encode


class EventLog:
    def __init__(self, recorded: Iterable[bytes] = ()) -> None:
        """`recorded`: those that a store has of it."""
        self._events: list[ResponseEvent | bytes] = list(recorded)  # bytes once somebody has wanted them
        self._is_closed = False
        self._changed = asyncio.Event()  # set, and replaced, at every change

    def __len__(self) -> int:
        return len(self._events)

    def add(self, events: Iterable[ResponseEvent | bytes]) -> None:
        assert not self._is_closed
        self._events += events
        self._wake()

    def close(self) -> None:
        """Nothing follows."""
        self._is_closed = True
        self._wake()

    def encoded(self, start: int) -> list[bytes]:
        """JSON of those numbered from `start`. Nothing is written that nobody reads."""
        for number in range(start, len(self._events)):
            event = self._events[number]
            if not isinstance(event, bytes):
                self._events[number] = _encode(event)
        return [event for event in self._events[start:] if isinstance(event, bytes)]

    async def follow(self, after: int) -> AsyncGenerator[Sequence[bytes], None]:
        """Those numbered above `after`, all that are new at each wake-up, to the end."""
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
        """Until there is one, or never will be."""
        while not self._events and not self._is_closed:
            await self._changed.wait()

    async def closed(self) -> None:
        while not self._is_closed:
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
