"""A limited process reads files of a kind; what it refuses, and what ends it, becomes an error of the request."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec

from ouzel.errors import EngineUnavailable, InvalidRequest
from ouzel.limited_process import JobEnded, JobLost, LimitedProcess, Limits

_RETRY_AFTER_S = 1.0

Outcome = TypeVar("Outcome")


class FileTask(Protocol):
    """Is a msgspec.Struct."""

    @property
    def data(self) -> bytes: ...


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    reason: str  # goes on a sentence: "must be a video ..."


class FileProcess:
    """Is called from many threads. The process starts with the first file."""

    def __init__(self, factory: str, noun: str, limits: Limits) -> None:
        """`noun` is what a file is called: video. Limits are those of a task that brings none of its own."""
        self._noun = noun
        self._process = LimitedProcess(factory, {}, limits)

    def close(self) -> None:
        self._process.close()

    def run(
        self,
        task: FileTask,
        limits: Limits,
        path: str,
        kind: type[Outcome],
        reason: Callable[[JobEnded], str],
    ) -> Outcome:
        """Raises InvalidRequest, with the task's own reason or the one that an end of the job has, EngineUnavailable.

        `path` is the content part's.
        """
        try:
            encoded = self._process.run(msgspec.msgpack.encode(task), limits)
        except JobLost as lost:
            raise EngineUnavailable(
                f"{self._noun}s cannot be read now: {lost}", retry_after_s=_RETRY_AFTER_S
            ) from lost
        except JobEnded as ended:
            raise self._refusal(reason(ended), path) from ended
        outcome: Outcome | Refused = msgspec.msgpack.decode(encoded, type=kind | Refused)
        if isinstance(outcome, Refused):
            raise self._refusal(outcome.reason, path)
        return outcome

    def _refusal(self, reason: str, path: str) -> InvalidRequest:
        return InvalidRequest(f"must be a {self._noun} {reason}", field=path)
