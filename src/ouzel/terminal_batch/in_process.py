"""Runs a batch with a model in this process.

Each result is appended to a file at once, so that the same command goes on after Ctrl-C. At the end
the results are written in the order of the requests.
"""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from ouzel.batches.input_lines import InputLines
from ouzel.batches.line_app import LineAnswer
from ouzel.batches.results import make_result
from ouzel.client.base import ApiClient
from ouzel.options.invalid_option import InvalidOption
from ouzel.store.batches.records import Line, LineEnd, NewLine
from ouzel.terminal_batch.batch_progress import BatchProgress
from ouzel.terminal_batch.result_paths import ResultPaths, write_whole

_PIECE_BYTES = 2**20
_AT_ONCE = 192  # lines; a server with default options takes more requests at once
_TRY_LATER = (429, 503)
_WAIT_S = 0.5
_MAX_SHOWN_FAULTS = 10
_ENDPOINTS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings")


class _Stored(msgspec.Struct):
    """A line of the file with the results so far."""

    position: int
    custom_id: str
    is_error: bool
    result: msgspec.Raw


class _First(msgspec.Struct):
    url: str = ""


def read_input(path: Path) -> tuple[str, list[NewLine]]:
    """Returns the endpoint and the lines of a file. Raises InvalidOption with its faults."""
    reader: InputLines | None = None
    lines: list[NewLine] = []
    endpoint = ""
    try:
        with path.open("rb") as file:
            for piece in iter(lambda: file.read(_PIECE_BYTES), b""):
                if reader is None:
                    endpoint = _read_endpoint(path, piece)
                    reader = InputLines(endpoint, lambda name, _: name)
                lines += reader.feed(piece)
    except OSError as error:
        raise InvalidOption(f"{path}: the file cannot be read: {error.strerror}") from error
    if reader is None:
        raise InvalidOption(f"{path}: the file has no requests")
    lines += reader.finish()
    if reader.faults:
        faults = [
            f"line {fault.line}: {fault.message}" for fault in reader.faults[:_MAX_SHOWN_FAULTS]
        ]
        raise InvalidOption(f"{path}: {'; '.join(faults)}")
    return endpoint, lines


def _read_endpoint(path: Path, piece: bytes) -> str:
    try:
        endpoint = msgspec.json.decode(piece.partition(b"\n")[0], type=_First).url
    except msgspec.MsgspecError as error:
        raise InvalidOption(f"{path}: the first line must be a request: {error}") from error
    if endpoint not in _ENDPOINTS:
        raise InvalidOption(
            f"{path}: url must be one of {', '.join(_ENDPOINTS)}, given {endpoint[:60]!r}"
        )
    return endpoint


class OwnBatch:
    """Runs the lines that have no result yet."""

    def __init__(self, paths: ResultPaths, endpoint: str, lines: list[NewLine]) -> None:
        self._paths = paths
        self._endpoint = endpoint
        self._lines = lines
        self._done: dict[int, _Stored] = {}
        self._progress = BatchProgress(sys.stderr)

    async def run(self, api: ApiClient) -> int:
        """Runs the batch to its end; returns the exit status. Raises OuzelError."""
        self._done = self._read_partial()
        waiting = iter(
            [
                Line(position, line.custom_id, line.body)
                for position, line in enumerate(self._lines)
                if position not in self._done
            ]
        )
        try:
            with self._paths.partial.open("ab") as partial:
                async with asyncio.TaskGroup() as group:
                    for _ in range(_AT_ONCE):
                        group.create_task(self._work(api, waiting, partial))
        except OSError as error:
            raise InvalidOption(
                f"{self._paths.partial}: the file cannot be written: {error.strerror}"
            ) from error
        finally:
            self._progress.clear()
        return self._finish()

    def _read_partial(self) -> dict[int, _Stored]:
        """Returns the results of an interrupted run; its last line may be incomplete."""
        done: dict[int, _Stored] = {}
        try:
            texts = self._paths.partial.read_bytes().splitlines()
        except FileNotFoundError:
            return done
        except OSError as error:
            raise InvalidOption(
                f"{self._paths.partial}: the file cannot be read: {error.strerror}"
            ) from error
        for text in texts:
            try:
                stored = msgspec.json.decode(text, type=_Stored)
            except msgspec.MsgspecError:
                continue
            if self._belongs_here(stored):
                done[stored.position] = stored
        write_whole(
            self._paths.partial, (msgspec.json.encode(each) + b"\n" for each in done.values())
        )
        return done

    def _belongs_here(self, stored: _Stored) -> bool:
        """Tells whether a result is for a line of the present file."""
        position = stored.position
        return (
            0 <= position < len(self._lines) and self._lines[position].custom_id == stored.custom_id
        )

    async def _work(self, api: ApiClient, waiting: Iterator[Line], partial: BinaryIO) -> None:
        """Runs one line after the other until none is left."""
        for line in waiting:
            answer = await api.ask("POST", self._endpoint, line.body)
            while answer.status in _TRY_LATER:
                await asyncio.sleep(_WAIT_S)
                answer = await api.ask("POST", self._endpoint, line.body)
            result = make_result(
                "openai", line, LineAnswer(status=answer.status, request_id="", body=answer.body)
            )
            stored = _Stored(
                line.position,
                line.custom_id,
                result.end is LineEnd.ERRORED,
                msgspec.Raw(result.result),
            )
            partial.write(msgspec.json.encode(stored) + b"\n")
            partial.flush()
            self._done[line.position] = stored
            self._progress.show("running", len(self._done), self._num_failed, len(self._lines))

    @property
    def _num_failed(self) -> int:
        return sum(stored.is_error for stored in self._done.values())

    def _finish(self) -> int:
        """Writes the results in the order of the requests; returns the exit status."""
        written = []
        for is_error, path in ((False, self._paths.output), (True, self._paths.errors)):
            results = [
                self._done[position].result
                for position in sorted(self._done)
                if self._done[position].is_error is is_error
            ]
            if results:
                write_whole(path, (bytes(result) + b"\n" for result in results))
                written.append(str(path))
        self._paths.partial.unlink(missing_ok=True)
        num_failed = self._num_failed
        sys.stdout.write(
            f"completed: {len(self._done) - num_failed} of {len(self._done)} requests succeeded, "
            f"{num_failed} failed: {', '.join(written)}\n"
        )
        return int(num_failed > 0)
