"""Downloads and deletes models in child processes (`store_child.py`), one for each task.

A process can be killed at any time, where a thread that waits for the network cannot. Its memory,
for example of the hub's library, is free again after the task.
"""

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, suppress
from pathlib import Path

import msgspec

from ouzel.api.endpoint.model_pulls import DiskFull, HubFailed, ModelInUse, PullProgress
from ouzel.config import ModelConfig
from ouzel.errors import EngineFailed, InvalidRequest, ModelNotFound, OuzelError
from ouzel.serve.store_child import (
    DeleteTask,
    Event,
    Failure,
    FileEvent,
    PullTask,
    Result,
    Task,
    WritingEvent,
)

logger = logging.getLogger(__name__)

_PROGRAM = "from ouzel.serve.store_child import run_child; run_child()"
_RETRY_AFTER_S = 30.0
_MAX_LINE_BYTES = 2**20
_SHOWN_ERROR_BYTES = 2000

_decoder = msgspec.json.Decoder(Event)


class ChildPuller:
    """Implements `ModelPuller` with the hub's cache and Ouzel's cache of this machine."""

    def __init__(self, model: ModelConfig, list_in_use: Callable[[], Iterable[Path]]) -> None:
        """`model` has the server's options of models: caches, short names, checks.

        `list_in_use` returns the directories of the loaded models.
        """
        self._cache_dir = model.cache_dir
        self._catalogue = model.catalogue
        self._model = model
        self._list_in_use = list_in_use

    async def pull(self, name: str) -> AsyncGenerator[PullProgress, None]:
        yield PullProgress("listing")
        model = self._model
        task = PullTask(
            name, model.cache_dir, model.catalogue, model.weights, check_fit=model.check_fit
        )
        async with aclosing(_run(task)) as events:
            async for event in events:
                match event:
                    case FileEvent():
                        yield PullProgress(
                            "file", event.name, event.digest, event.done_bytes, event.total_bytes
                        )
                        if event.is_verifying:
                            yield PullProgress("verifying")
                    case WritingEvent():
                        yield PullProgress("writing")
                    case Failure():
                        raise _make_error(event)
                    case Result():
                        return
        raise _make_end_error()

    async def is_present(self, name: str) -> bool:
        from ouzel.model_store.presence import is_pulled  # noqa: PLC0415  rarely needed

        return await asyncio.to_thread(is_pulled, name, self._cache_dir, self._catalogue)

    async def delete(self, name: str) -> int:
        in_use = [str(path) for path in self._list_in_use()]
        task = DeleteTask(name, self._cache_dir, self._catalogue, in_use)
        async with aclosing(_run(task)) as events:
            async for event in events:
                if isinstance(event, Failure):
                    raise _make_error(event)
                if isinstance(event, Result):
                    return event.num_bytes
        raise _make_end_error()


async def _run(task: Task) -> AsyncGenerator[Event, None]:
    """Yields the events of a child; closing the generator kills the child and waits for its end."""
    process = await asyncio.create_subprocess_exec(
        # -P: no import from the working directory
        *(sys.executable, "-P", "-c", _PROGRAM),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=_MAX_LINE_BYTES,
        start_new_session=True,  # Ctrl+C reaches the server, which ends its children
    )
    assert process.stdin is not None
    assert process.stdout is not None
    reading_errors = asyncio.create_task(_read_errors(process))
    try:
        process.stdin.write(msgspec.json.encode(task) + b"\n")
        while line := await process.stdout.readline():
            yield _decoder.decode(line)
        await process.wait()
        if process.returncode:
            errors = (await reading_errors).decode(errors="replace")
            logger.error("the process for the model %s ended: %s", task.name, errors)
    finally:
        if process.returncode is None:
            kill_session(process.pid)
        await process.wait()
        reading_errors.cancel()
        process.stdin.close()


def kill_session(pid: int) -> None:
    """Kills a child that leads a session, and the processes that it has started, like pip."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


async def _read_errors(process: Process) -> bytes:
    """Reads standard error to its end, and returns the last bytes."""
    assert process.stderr is not None
    last = b""
    while piece := await process.stderr.read(_SHOWN_ERROR_BYTES):
        last = (last + piece)[-_SHOWN_ERROR_BYTES:]
    return last


def _make_error(failure: Failure) -> OuzelError:
    match failure.kind:
        case "disk":
            return DiskFull(failure.message)
        case "hub":
            return HubFailed(failure.message, retry_after_s=_RETRY_AFTER_S)
        case "missing":
            return ModelNotFound(failure.message, param="model")
        case "in_use":
            return ModelInUse(failure.message, param="model")
        case _:
            return InvalidRequest(failure.message, param="model")


def _make_end_error() -> EngineFailed:
    return EngineFailed("the process of the download ended without a result; the log says why")
