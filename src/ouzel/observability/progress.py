"""Reports the progress of long work to the listener of the current context, if there is one."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

TELL_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Progress:
    stage: str  # a description of the work for people, such as "compressing the weights"
    done_bytes: int = 0
    total_bytes: int = 0  # 0: unknown


ProgressListener = Callable[[Progress], None]

_listener_in_scope: ContextVar[ProgressListener | None] = ContextVar(
    "progress_listener", default=None
)
_stage_in_scope: ContextVar["Stage | None"] = ContextVar("stage", default=None)


@contextmanager
def listen_to_progress(listener: ProgressListener) -> Iterator[None]:
    """Sets the listener for the context of the block."""
    token = _listener_in_scope.set(listener)
    try:
        yield
    finally:
        _listener_in_scope.reset(token)


def is_listened_to() -> bool:
    """Tells whether the current context has a listener."""
    return _listener_in_scope.get() is not None


def tell_progress(progress: Progress) -> None:
    """Passes on the progress that another process has reported."""
    listener = _listener_in_scope.get()
    if listener is not None:
        listener(progress)


class Stage:
    """A stage counts the bytes done, in any thread, and reports them every 0.1 seconds."""

    def __init__(self, name: str, total_bytes: int, listener: ProgressListener | None) -> None:
        self._name = name
        self._total_bytes = total_bytes
        self._listener = listener
        self._lock = threading.Lock()
        self._done_bytes = 0
        self._told_at = -TELL_EVERY_S

    def advance(self, num_bytes: int) -> None:
        """Adds to the bytes done; `num_bytes` is negative if work has to be repeated."""
        if self._listener is None:
            return
        with self._lock:
            self._done_bytes += num_bytes
            is_due = time.monotonic() - self._told_at >= TELL_EVERY_S
        if is_due:
            self.tell()

    def tell(self) -> None:
        if self._listener is None:
            return
        with self._lock:
            self._told_at = time.monotonic()
            progress = Progress(
                self._name, min(self._done_bytes, self._total_bytes), self._total_bytes
            )
        self._listener(progress)


@contextmanager
def stage(name: str, total_bytes: int = 0, *, done_bytes: int = 0) -> Iterator[Stage]:
    """Begins a stage, which ends with the block; `done_bytes` were done before."""
    begun = Stage(name, total_bytes, _listener_in_scope.get())
    begun.advance(done_bytes)
    token = _stage_in_scope.set(begun)
    try:
        yield begun
    finally:
        _stage_in_scope.reset(token)
        begun.tell()


def advance_stage(num_bytes: int) -> None:
    """Advances the stage of the current context, if there is one.

    Low-level code calls this without knowing the stage that it is a part of.
    """
    begun = _stage_in_scope.get()
    if begun is not None:
        begun.advance(num_bytes)
