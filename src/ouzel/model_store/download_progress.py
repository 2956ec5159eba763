"""Reports the progress of each file of a download to the listener of the current context.

`observability.progress` reports one sum for people at a terminal; programs read these records.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ouzel.observability.progress import TELL_EVERY_S, Stage


@dataclass(frozen=True, slots=True)
class FileProgress:
    name: str
    digest: str  # `sha256:` and the checksum, or `etag:` and the hub's own mark of the content
    total_bytes: int
    done_bytes: int
    is_verifying: bool = False  # all bytes are here, and their checksum is being computed


FileListener = Callable[[FileProgress], None]

_listener_in_scope: ContextVar[FileListener | None] = ContextVar("file_listener", default=None)


@contextmanager
def listen_to_files(listener: FileListener) -> Iterator[None]:
    """Sets the listener for the context of the block. Several threads call it."""
    token = _listener_in_scope.set(listener)
    try:
        yield
    finally:
        _listener_in_scope.reset(token)


def tell_file(progress: FileProgress) -> None:
    listener = _listener_in_scope.get()
    if listener is not None:
        listener(progress)


class Transfer:
    """Counts the bytes of one file, for the stage of the whole download and for the listener.

    It is made in the context of the listener; one thread uses it at a time.
    """

    def __init__(self, begin: FileProgress, stage: Stage) -> None:
        self._begin = begin
        self._stage = stage
        self._listener = _listener_in_scope.get()
        self._lock = threading.Lock()
        self._done_bytes = begin.done_bytes
        self._told_at = 0.0
        self.tell()

    def advance(self, num_bytes: int) -> None:
        """Adds to the bytes done; `num_bytes` is negative if work has to be repeated."""
        self._stage.advance(num_bytes)
        with self._lock:
            self._done_bytes += num_bytes
            is_due = time.monotonic() - self._told_at >= TELL_EVERY_S
        if is_due:
            self._tell_listener()

    def tell(self, *, is_verifying: bool = False) -> None:
        self._stage.tell()
        self._tell_listener(is_verifying=is_verifying)

    def _tell_listener(self, *, is_verifying: bool = False) -> None:
        self._told_at = time.monotonic()
        if self._listener is not None:
            begin = self._begin
            self._listener(
                FileProgress(
                    begin.name, begin.digest, begin.total_bytes, self._done_bytes, is_verifying
                )
            )
