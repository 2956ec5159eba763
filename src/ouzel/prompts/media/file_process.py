"""Reads files of one kind in a limited process, and turns its failures into errors of the
request.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec

from ouzel.errors import EngineUnavailable, InvalidRequest
from ouzel.limited_process import JobEnded, JobLost, LimitedProcess, Limits

_RETRY_AFTER_S = 1.0

Outcome = TypeVar("Outcome")


class FileTask(Protocol):
    """Is a msgspec.Struct with the bytes of a file."""

    @property
    def data(self) -> bytes: ...


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    reason: str  # continues the sentence "must be a video ..."


class FileProcess:
    """Runs a limited process, which starts with the first file. It is called from many threads."""

    def __init__(self, factory: str, noun: str, limits: Limits) -> None:
        """`noun` names the kind of file in messages, as video. `limits` apply to tasks without
        their own.
        """
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
        """Runs a task and returns its outcome.

        `path` names the part in errors. `reason` describes the end of a job in a message. Raises
        InvalidRequest, and EngineUnavailable if the process cannot run.
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
