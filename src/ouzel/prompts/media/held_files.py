"""The files of pictures count as long as something holds them, whatever becomes of their requests."""

from collections import deque
from weakref import finalize

from ouzel.errors import Overloaded
from ouzel.prompts.media.picture import Picture

_RETRY_AFTER_S = 1.0


class HeldFiles:
    """Belongs to one event loop."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        # Pictures may be dropped in any thread and at any moment: appending is all that is done then.
        self._dropped: deque[int] = deque()

    def add(self, picture: Picture) -> None:
        """Raises Overloaded, where the picture is too much beside the others."""
        while self._dropped:
            self._num_bytes -= self._dropped.popleft()
        num_bytes = len(picture.data)
        if self._num_bytes + num_bytes > self._max_bytes:
            raise Overloaded(
                f"the server has too many pictures: {self._num_bytes} bytes of at most {self._max_bytes} "
                f"(max_media_bytes_total), and {num_bytes} more",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._num_bytes += num_bytes
        finalize(picture, self._dropped.append, num_bytes).atexit = False
