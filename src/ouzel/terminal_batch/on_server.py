"""Runs a batch on a server: uploads the file, waits, and writes the results.

The file with the state names the batch, so that the same command goes on after Ctrl-C, a lost
connection or a restart of this machine.
"""

import asyncio
import hashlib
import sys
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import msgspec

from ouzel.client.base import Answer, ApiFailure, read_failure
from ouzel.client.form import write_form
from ouzel.client.http_client import HttpClient
from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal_batch.batch_progress import BatchProgress
from ouzel.terminal_batch.result_paths import ResultPaths, write_whole

_POLL_S = 1.0
_MAX_FAILURES = 30  # failed polls in a row, while a server restarts
_MAX_SHOWN_FAULTS = 10
_OK = 200
_FINAL = ("completed", "failed", "expired", "cancelled")


Content = TypeVar("Content", bound=msgspec.Struct)


class _Counts(msgspec.Struct, frozen=True):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _Fault(msgspec.Struct, frozen=True):
    message: str = ""
    line: int | None = None


class _Faults(msgspec.Struct, frozen=True):
    data: list[_Fault] = []


class _Batch(msgspec.Struct, frozen=True):
    id: str
    status: str
    request_counts: _Counts = _Counts()
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Faults | None = None


class _File(msgspec.Struct, frozen=True):
    id: str


class _State(msgspec.Struct, frozen=True):
    """The content of the file with the state."""

    batch_id: str
    digest: str  # digest of the input file


class _Line(msgspec.Struct, frozen=True):
    url: str = ""


class ServerBatch:
    def __init__(self, client: HttpClient, paths: ResultPaths, *, window: str) -> None:
        self._client = client
        self._paths = paths
        self._window = window

    async def run(self) -> int:
        """Runs the batch, or goes on with it; returns the exit status. Raises OuzelError."""
        batch_id = self._read_state()
        if batch_id is None:
            batch_id = await self._begin()
        batch = await self._wait(batch_id)
        return await self._finish(batch)

    async def cancel(self) -> int:
        """Cancels the batch of the state, and writes its results so far. Raises OuzelError."""
        batch_id = self._read_state()
        if batch_id is None:
            raise InvalidOption(f"--cancel: no batch of {self._paths.input} is running")
        answer = await self._client.ask("POST", f"/v1/batches/{batch_id}/cancel")
        if answer.status not in (_OK, HTTPStatus.CONFLICT):  # it may have ended meanwhile
            raise read_failure(answer)
        return await self._finish(await self._wait(batch_id))

    def _read_state(self) -> str | None:
        """Returns the id of the batch that an earlier call has begun; None if there is none."""
        try:
            state = msgspec.json.decode(self._paths.state.read_bytes(), type=_State)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidOption(f"{self._paths.state}: cannot be read: {error}") from error
        if state.digest != _digest(_read(self._paths.input)):
            raise InvalidOption(
                f"{self._paths.input}: has changed since its batch {state.batch_id} began; delete "
                f"{self._paths.state} to run the new requests"
            )
        return state.batch_id

    async def _begin(self) -> str:
        content = _read(self._paths.input)
        try:
            endpoint = msgspec.json.decode(content.partition(b"\n")[0], type=_Line).url
        except msgspec.MsgspecError as error:
            raise InvalidOption(
                f"{self._paths.input}: the first line must be a request: {error}"
            ) from error
        form, content_type = write_form({"purpose": "batch"}, self._paths.input.name, content)
        uploaded = await self._client.ask("POST", "/v1/files", form, content_type=content_type)
        fields = {
            "input_file_id": _decode(uploaded, _File).id,
            "endpoint": endpoint,
            "completion_window": self._window,
        }
        created = await self._client.ask("POST", "/v1/batches", msgspec.json.encode(fields))
        batch_id = _decode(created, _Batch).id
        state = _State(batch_id, _digest(content))
        write_whole(self._paths.state, [msgspec.json.encode(state)])
        return batch_id

    async def _wait(self, batch_id: str) -> _Batch:
        """Shows the progress until the batch has ended."""
        progress = BatchProgress(sys.stderr)
        num_failures = 0
        try:
            while True:
                try:
                    answer = await self._client.ask("GET", f"/v1/batches/{batch_id}")
                    batch = _decode(answer, _Batch)
                    num_failures = 0
                except ApiFailure as failure:
                    num_failures += 1
                    is_passing = failure.http_status in (0, 429, 503)
                    if not is_passing or num_failures > _MAX_FAILURES:
                        raise
                else:
                    counts = batch.request_counts
                    progress.show(
                        batch.status,
                        counts.completed + counts.failed,
                        counts.failed,
                        counts.total,
                    )
                    if batch.status in _FINAL:
                        return batch
                await asyncio.sleep(_POLL_S)
        finally:
            progress.clear()

    async def _finish(self, batch: _Batch) -> int:
        """Writes the results and reports the end; returns the exit status."""
        written = []
        for file_id, path in (
            (batch.output_file_id, self._paths.output),
            (batch.error_file_id, self._paths.errors),
        ):
            if file_id is not None:
                answer = await self._client.ask("GET", f"/v1/files/{file_id}/content")
                if answer.status != _OK:
                    raise read_failure(answer)
                write_whole(path, [answer.body])
                written.append(str(path))
        self._paths.state.unlink(missing_ok=True)
        faults = [] if batch.errors is None else batch.errors.data
        for fault in faults[:_MAX_SHOWN_FAULTS]:
            where = "" if fault.line is None else f"line {fault.line}: "
            sys.stderr.write(f"ouzel: {self._paths.input}: {where}{fault.message}\n")
        counts = batch.request_counts
        sys.stdout.write(
            f"{batch.status}: {counts.completed} of {counts.total} requests succeeded, "
            f"{counts.failed} failed{': ' if written else ''}{', '.join(written)}\n"
        )
        return int(batch.status != "completed" or counts.failed > 0)


def _decode(answer: Answer, content_type: type[Content]) -> Content:
    """Decodes an answer. Raises ApiFailure for an error, or for another content."""
    if answer.status != _OK:
        raise read_failure(answer)
    try:
        return msgspec.json.decode(answer.body, type=content_type)
    except msgspec.MsgspecError as error:
        raise ApiFailure(f"the server's answer cannot be read: {error}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidOption(f"{path}: the file cannot be read: {error.strerror}") from error


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
