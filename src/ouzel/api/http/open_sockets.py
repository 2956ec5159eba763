"""Limits the number of open WebSockets of all paths together."""

from collections.abc import Iterator
from contextlib import contextmanager

from ouzel.errors import Overloaded

_RETRY_AFTER_S = 1.0


class OpenSockets:
    def __init__(self, max_open: int) -> None:
        self._max_open = max_open
        self._num_open = 0

    @contextmanager
    def count(self) -> Iterator[None]:
        """Counts a WebSocket while the block runs. Raises Overloaded."""
        if self._num_open >= self._max_open:
            what = f"{self._num_open} WebSockets are open, the limit is {self._max_open}"
            raise Overloaded(what, retry_after_s=_RETRY_AFTER_S)
        self._num_open += 1
        try:
            yield
        finally:
            self._num_open -= 1
