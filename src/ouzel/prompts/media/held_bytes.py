"""Limits the bytes of all media that are in use, even after their requests have ended."""

from collections import deque
from threading import Lock
from weakref import finalize

from ouzel.errors import Overloaded

_RETRY_AFTER_S = 1.0


class HeldBytes:
    """Counts the bytes of the objects that hold media. It is called from many threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._lock = Lock()
        # An object may be freed in any thread at any moment; appending to a deque is safe there.
        self._dropped: deque[int] = deque()

    def add(self, holder: object, num_bytes: int) -> None:
        """Counts the bytes until `holder` is freed. Raises Overloaded if the sum exceeds the
        limit.
        """
        with self._lock:
            while self._dropped:
                self._num_bytes -= self._dropped.popleft()
            if self._num_bytes + num_bytes > self._max_bytes:
                raise Overloaded(
                    f"the server has too many media: {self._num_bytes} bytes of at most "
                    f"{self._max_bytes} (max_media_bytes_total), and {num_bytes} more",
                    retry_after_s=_RETRY_AFTER_S,
                )
            self._num_bytes += num_bytes
        finalize(holder, self._dropped.append, num_bytes).atexit = False
