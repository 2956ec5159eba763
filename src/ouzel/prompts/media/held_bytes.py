"""The bytes of pictures count as long as something holds them, whatever becomes of their requests."""

from collections import deque
from threading import Lock
from weakref import finalize

from ouzel.errors import Overloaded

_RETRY_AFTER_S = 1.0


class HeldBytes:
    """Is called from many threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._lock = Lock()
        # Holders may be dropped in any thread and at any moment: appending is all that is done then.
        self._dropped: deque[int] = deque()

    def add(self, holder: object, num_bytes: int) -> None:
        """Counts the bytes until the holder is dropped. Raises Overloaded where they are too many beside the others."""
        with self._lock:
            while self._dropped:
                self._num_bytes -= self._dropped.popleft()
            if self._num_bytes + num_bytes > self._max_bytes:
                raise Overloaded(
                    f"the server has too many pictures: {self._num_bytes} bytes of at most {self._max_bytes} "
                    f"(max_media_bytes_total), and {num_bytes} more",
                    retry_after_s=_RETRY_AFTER_S,
                )
            self._num_bytes += num_bytes
        finalize(holder, self._dropped.append, num_bytes).atexit = False
