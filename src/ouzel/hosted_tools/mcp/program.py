"""Runs an MCP server as a program and exchanges messages over its standard input and output.

The library's own way of doing so has no limit for the length of a message. The program gets one
end of a pair of sockets as its input and output. It has a process group of its own, which is killed
when the connection ends, and few variables of the environment.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mcp.shared.message import SessionMessage
from mcp.types.jsonrpc import jsonrpc_message_adapter

from ouzel.hosted_tools.mcp.faults import Faults
from ouzel.hosted_tools.mcp.log_pipe import open_log_pipe
from ouzel.hosted_tools.mcp.records import LocalServer

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

logger = logging.getLogger(__name__)

_INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_GRACE_S = 1.0  # time for the program to end by itself, then after SIGTERM, then after SIGKILL
_MAX_STRAY_LINES = 100  # lines that are no messages; then the connection ends
_MAX_LOGGED_LINES = 5
_MAX_LINE = 200  # characters of such a line in the log


@asynccontextmanager
async def run_program(
    server: LocalServer, faults: Faults, *, max_message_bytes: int
) -> AsyncIterator["TransportStreams"]:
    """Starts the program and yields the streams of messages; ends the program afterwards.

    Raises OSError if the program cannot be started.
    """
    ours, theirs = socket.socketpair()
    with open_log_pipe(server.label) as log:
        try:
            process = await asyncio.create_subprocess_exec(
                server.command,
                *server.args,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=log,
                env=_make_environment() | dict(server.env),
                cwd=server.cwd,
                start_new_session=True,
            )
        except BaseException as error:
            ours.close()
            if isinstance(error, OSError | ValueError):
                raise OSError(f"{server.command}: {error}") from error
            raise
        finally:
            theirs.close()
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=max_message_bytes)
            try:
                messages = _Received(reader, server.label, faults, max_message_bytes)
                yield messages, _Sent(writer)
            finally:
                writer.close()
        finally:
            await asyncio.shield(asyncio.create_task(_stop(process, server.label)))


def _make_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


async def _stop(process: asyncio.subprocess.Process, label: str) -> None:
    """Waits until the program has ended, and kills the rest of its process group."""
    try:
        for signal_number in (None, signal.SIGTERM, signal.SIGKILL):
            if signal_number is not None:
                _send_signal(process, signal_number)
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_S):
                    await process.wait()
                    return
        logger.warning("the MCP server %s cannot be killed", label)
    finally:
        # Its children may have outlived it, and this may be cancelled before it has ended.
        _send_signal(process, signal.SIGKILL)


def _send_signal(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class _Stream:
    """The methods that the streams of both directions have."""

    async def aclose(self) -> None:
        pass  # the connection is closed with the program

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Received(_Stream):
    def __init__(
        self, reader: asyncio.StreamReader, label: str, faults: Faults, max_message_bytes: int
    ) -> None:
        self._reader = reader
        self._label = label
        self._faults = faults
        self._max_message_bytes = max_message_bytes
        self._num_stray_lines = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while self._num_stray_lines <= _MAX_STRAY_LINES:
            line = await self._read_line()
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                self._num_stray_lines += 1
                if self._num_stray_lines <= _MAX_LOGGED_LINES and line.strip():
                    text = line[:_MAX_LINE].decode(errors="replace")
                    logger.info("the MCP server %s wrote no message: %r", self._label, text)
        self._faults.text = f"wrote more than {_MAX_STRAY_LINES} lines that are no messages"
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage | Exception:
        return await self.__anext__()

    async def _read_line(self) -> bytes:
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            self._faults.text = f"sent a message of more than {self._max_message_bytes} bytes"
        except (asyncio.IncompleteReadError, OSError):
            self._faults.text = "has ended"
            self._faults.detail = "the lines before this one have its standard error"
        raise StopAsyncIteration


class _Sent(_Stream):
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, item: SessionMessage, /) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._writer.write(text.encode() + b"\n")
        # A program that has ended is noticed by its output.
        with suppress(OSError):
            await self._writer.drain()
