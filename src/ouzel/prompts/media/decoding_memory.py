"""Limits the memory of all threads that decode media; a thread waits until enough is free."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class DecodingMemory:
    """Shares an amount of memory among threads. It is given out in the order of the requests, so
    that a large picture is not overtaken forever.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._turns: deque[object] = deque()
        self._changed = Condition()

    @contextmanager
    def hold(self, num_bytes: int) -> Iterator[None]:
        """Waits until `num_bytes` are free, and holds them in the context.

        A thread that needs more than the whole amount waits until no other thread holds any.
        """
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
