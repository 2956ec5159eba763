"""Threads that decode pictures share an amount of memory, and wait for each other's."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class DecodingMemory:
    """Is given out in the order in which threads ask, so that a large picture is not overtaken for ever."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._turns: deque[object] = deque()
        self._changed = Condition()

    @contextmanager
    def hold(self, num_bytes: int) -> Iterator[None]:
        """Waits until there is so much. Who needs more than there is at all waits until nobody else has any."""
        share = min(num_bytes, self._max_bytes)
        turn = object()
        with self._changed:
            self._turns.append(turn)
            self._changed.wait_for(
                lambda: self._turns[0] is turn and self._num_bytes + share <= self._max_bytes
            )
            self._turns.popleft()
            self._num_bytes += share
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._num_bytes -= share
                self._changed.notify_all()
