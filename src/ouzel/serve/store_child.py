"""Downloads or deletes one model in a process of its own, which the server can kill.

The server writes one task as a line of JSON to standard input, and keeps it open. The child writes
events as lines of JSON to standard output; the last one is a result or a failure. The child ends at
once if standard input ends, so that no download outlives a killed server.
"""

import os
import signal
import sys
import threading
from typing import BinaryIO

import msgspec

_NICENESS = 10  # downloads hash gigabytes, and must not slow down the engines


class PullTask(msgspec.Struct, tag="pull"):
    name: str
    cache_dir: str
    catalogue: str  # file or URL of the short names; empty: the bundled catalogue
    weights: str  # the server's options of a model whose short name must fit this machine
    check_fit: bool


class DeleteTask(msgspec.Struct, tag="delete"):
    name: str
    cache_dir: str
    catalogue: str
    in_use: list[str]  # directories of loaded models


class FileEvent(msgspec.Struct, tag="file"):
    name: str
    digest: str
    total_bytes: int
    done_bytes: int
    is_verifying: bool


class WritingEvent(msgspec.Struct, tag="writing"):
    """All files are here; small files are made for a GGUF model, and names written."""


class Result(msgspec.Struct, tag="result"):
    num_bytes: int = 0  # freed by a deletion


class Failure(msgspec.Struct, tag="failure"):
    kind: str  # a value of FAILURE_KINDS
    message: str


FAILURE_KINDS = ("refused", "missing", "in_use", "disk", "hub")
Task = PullTask | DeleteTask
Event = FileEvent | WritingEvent | Result | Failure

_encode = msgspec.json.Encoder().encode


def run_child() -> None:
    """Does the task that the server sends, and exits."""
    os.nice(_NICENESS)
    events = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else writes between the events
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=Task)
    threading.Thread(target=_exit_with_server, daemon=True).start()
    reporter = _Reporter(events)
    reporter.tell(_do(task, reporter))


def _exit_with_server() -> None:
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)  # this process leads a session; pip is in it too


class _Reporter:
    """Writes events from several threads."""

    def __init__(self, events: BinaryIO) -> None:
        self._events = events
        self._lock = threading.Lock()

    def tell(self, event: Event) -> None:
        with self._lock:
            self._events.write(_encode(event) + b"\n")
            self._events.flush()


def _do(task: Task, reporter: _Reporter) -> Result | Failure:
    match task:
        case PullTask():
            return _pull(task, reporter)
        case DeleteTask():
            return _delete(task)


def _pull(task: PullTask, reporter: _Reporter) -> Result | Failure:
    from ouzel.config import ModelConfig  # noqa: PLC0415
    from ouzel.errors import ModelLoadError  # noqa: PLC0415
    from ouzel.model_store.download_progress import FileProgress, listen_to_files  # noqa: PLC0415
    from ouzel.model_store.model_directory import find_or_download  # noqa: PLC0415

    def tell(file: FileProgress) -> None:
        reporter.tell(
            FileEvent(file.name, file.digest, file.total_bytes, file.done_bytes, file.is_verifying)
        )

    try:
        with listen_to_files(tell):
            find_or_download(
                ModelConfig(
                    model=task.name,
                    cache_dir=task.cache_dir,
                    catalogue=task.catalogue,
                    weights=task.weights,
                    check_fit=task.check_fit,
                )
            )
    except ModelLoadError as error:
        return Failure(_classify(error), str(error))
    reporter.tell(WritingEvent())
    return Result()


def _classify(error: BaseException) -> str:
    """Returns the kind of a failure, by the first of its causes that has a kind of its own."""
    cause: BaseException | None = error
    while cause is not None:
        kind = _classify_one(cause)
        if kind != "refused":
            return kind
        cause = cause.__cause__
    return "refused"


def _classify_one(cause: BaseException) -> str:
    from ouzel.model_store.failures import (  # noqa: PLC0415
        is_disk_full,
        is_missing,
        is_unreachable,
    )

    if not isinstance(cause, Exception):
        return "refused"
    if is_disk_full(cause):
        return "disk"
    if is_missing(cause):
        return "missing"
    if isinstance(cause, BlockingIOError):  # another process downloads the file
        return "in_use"
    return "hub" if is_unreachable(cause) else "refused"


def _delete(task: DeleteTask) -> Result | Failure:
    from pathlib import Path  # noqa: PLC0415

    from ouzel.errors import ModelLoadError, OuzelError  # noqa: PLC0415
    from ouzel.model_store.catalogue.whereabouts import name_stored_model  # noqa: PLC0415
    from ouzel.model_store.deletion import InUse, NothingStored, delete_model  # noqa: PLC0415
    from ouzel.model_store.inventory_reader import read_inventory  # noqa: PLC0415

    try:
        inventory = read_inventory(task.cache_dir)
        name = task.name
        if name not in {each.name for each in inventory.pulled}:
            name = name_stored_model(name, task.cache_dir, task.catalogue)
        return Result(delete_model(inventory, name, [Path(each) for each in task.in_use]))
    except (NothingStored, ModelLoadError) as error:  # the second for a name without a meaning
        return Failure("missing", str(error))
    except InUse as error:
        return Failure("in_use", str(error))
    except OuzelError as error:
        return Failure("refused", str(error))
