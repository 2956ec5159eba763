"""What takes long tells how far it is, to whoever listens in its context; most often nobody does."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

TELL_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Progress:
    stage: str  # what is being done, as people are told: "compressing the weights"
    done_bytes: int = 0
    total_bytes: int = 0  # 0: how far it is cannot be told


ProgressListener = Callable[[Progress], None]

_listener_in_scope: ContextVar[ProgressListener | None] = ContextVar(
    "progress_listener", default=None
)
_stage_in_scope: ContextVar["Stage | None"] = ContextVar("stage", default=None)


@contextmanager
def progress_told_to(listener: ProgressListener) -> Iterator[None]:
    """Makes it the one that listens in the block's context."""
    token = _listener_in_scope.set(listener)
    try:
        yield
    finally:
        _listener_in_scope.reset(token)


def tell_progress(progress: Progress) -> None:
    """Tells what another process has told."""
    listener = _listener_in_scope.get()
    if listener is not None:
        listener(progress)


class Stage:
    """It counts what is done, in any thread, and tells it every so often."""

    def __init__(self, name: str, total_bytes: int, listener: ProgressListener | None) -> None:
        self._name = name
        self._total_bytes = total_bytes
        self._listener = listener
        self._lock = threading.Lock()
        self._done_bytes = 0
        self._told_at = -TELL_EVERY_S

    def advance(self, num_bytes: int) -> None:
        """Takes a negative number where something has to be done again."""
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
    """Begins a stage, which ends with the block; `done_bytes` were done at an earlier time."""
    begun = Stage(name, total_bytes, _listener_in_scope.get())
    begun.advance(done_bytes)
    token = _stage_in_scope.set(begun)
    try:
        yield begun
    finally:
        _stage_in_scope.reset(token)
        begun.tell()


def advance_stage(num_bytes: int) -> None:
    """Advances the stage of this context, if there is one: for code that does not know in what it takes part."""
    begun = _stage_in_scope.get()
    if begun is not None:
        begun.advance(num_bytes)
