"""Connects to one running engine in a child process or a thread: the only process boundary.

`child.py` has the child's side, `frames.py` the format of the messages.
"""

import asyncio
import logging
import signal
import socket
import sys
import threading
from asyncio.subprocess import Process, create_subprocess_exec
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import ClassVar, Protocol

import msgspec

from ouzel.engine.loop import EngineSpec, Inbox, drive_engine
from ouzel.engine_client.frames import frame
from ouzel.engine_client.last_stacks import LastStacks
from ouzel.types.engine_messages import EngineCommand, EngineEvent, Shutdown

logger = logging.getLogger(__name__)


class EngineLink(Protocol):
    """Sends commands to one engine and receives its events."""

    remedy: ClassVar[str]  # the treatment of a hanging engine, for people

    def send(self, commands: list[EngineCommand]) -> list[EngineCommand]:
        """Sends commands without blocking; returns the commands that cannot be encoded.

        Commands to an engine that is gone are dropped.
        """
        ...

    async def receive(self) -> EngineEvent | None:
        """Returns the next event; None when the engine is gone."""
        ...

    async def stop(self, timeout_s: float | None) -> None:
        """Waits for the engine to end, up to `timeout_s` (None: no limit).

        Then kills it if possible.
        """
        ...

    async def exit_status(self) -> str:
        """Describes how an engine that is gone ended, for people."""
        ...


StartLink = Callable[[EngineSpec], Awaitable[EngineLink]]
"""Connects to a new engine, which may still load. Raises OSError if that may succeed later."""

_PACKAGE = Path(__file__).parents[1]
_IMPORT_PACKAGE = (
    "import importlib.util as i, sys; "
    "i.find_spec('msgspec') or sys.exit("
    "f'ouzel: {sys.executable} has no msgspec: is it the Python of the engine?'); "
    f"s = i.spec_from_file_location('ouzel', {str(_PACKAGE / '__init__.py')!r}, "
    f"submodule_search_locations=[{str(_PACKAGE)!r}]); "
    "m = sys.modules['ouzel'] = i.module_from_spec(s); s.loader.exec_module(m); "
)


async def start_thread(spec: EngineSpec) -> EngineLink:
    return ThreadLink(spec)


class ThreadLink:
    """Runs its engine in a thread of this process: for tests and embedding.

    A hanging engine keeps its memory until it continues or this process ends.
    """

    remedy: ClassVar[str] = "its thread cannot be ended from outside; waiting for it"

    def __init__(self, spec: EngineSpec) -> None:
        self._loop = asyncio.get_running_loop()
        self._inbox: Inbox = SimpleQueue()
        self._events: asyncio.Queue[EngineEvent | None] = asyncio.Queue()
        self._has_ended = asyncio.Event()
        threading.Thread(target=self._run, args=(spec,), name="engine", daemon=True).start()

    def _run(self, spec: EngineSpec) -> None:
        drive_engine(spec, self._inbox, self._emit)
        self._emit(None)
        self._tell(self._has_ended.set)

    def _emit(self, event: EngineEvent | None) -> None:
        self._tell(partial(self._events.put_nowait, event))

    def _tell(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the event loop is closed: nobody listens
            self._loop.call_soon_threadsafe(callback)

    def send(self, commands: list[EngineCommand]) -> list[EngineCommand]:
        self._inbox.put(commands)
        return []

    async def receive(self) -> EngineEvent | None:
        return await self._events.get()

    async def stop(self, timeout_s: float | None) -> None:
        self._inbox.put([Shutdown()])
        try:
            async with asyncio.timeout(timeout_s):
                await self._has_ended.wait()
        except TimeoutError:
            logger.warning(
                "the engine's thread did not end within %g s; it is left behind", timeout_s
            )

    async def exit_status(self) -> str:
        return "its thread ended"


async def start_process(spec: EngineSpec) -> EngineLink:
    """Starts the child process of an engine.

    Another interpreter than the server's imports this package only, without the packages installed
    beside it.
    """
    payload = frame(spec)
    last_stacks = LastStacks()
    ours, theirs = socket.socketpair()
    with theirs:
        fds = theirs.fileno(), last_stacks.writer_fd
        program = f"from ouzel.engine_client.child import run_child; run_child{fds}"
        if spec.python:
            program = _IMPORT_PACKAGE + program
        python = spec.python or sys.executable
        # -P: no import from the working directory
        command = (python, "-P", "-c", program)
        try:
            process = await create_subprocess_exec(
                *command, pass_fds=fds, stdin=asyncio.subprocess.DEVNULL
            )
        except BaseException:
            ours.close()
            last_stacks.close()
            raise
        finally:
            last_stacks.close_writer()
    reader, writer = await asyncio.open_connection(sock=ours)
    writer.write(payload)
    return ProcessLink(process, reader, writer, last_stacks)


class ProcessLink:
    """Runs its engine in a child process, at the other end of a socket pair."""

    remedy: ClassVar[str] = "its process is killed"

    def __init__(
        self,
        process: Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        last_stacks: LastStacks,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._last_stacks = last_stacks
        self._decoder = msgspec.msgpack.Decoder(EngineEvent)

    def send(self, commands: list[EngineCommand]) -> list[EngineCommand]:
        if self._writer.is_closing():
            return []
        try:
            self._writer.write(frame(commands))
        # one command cannot be encoded: the others are sent without it
        except (OverflowError, TypeError, ValueError):
            if len(commands) == 1:
                logger.exception("a command cannot be sent to the engine")
                return commands
            return [unsent for command in commands for unsent in self.send([command])]
        return []

    async def receive(self) -> EngineEvent | None:
        try:
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            event: EngineEvent = self._decoder.decode(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return event

    async def stop(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):  # it has just ended
                self._process.kill()
            await self._process.wait()
        self._writer.close()
        self._last_stacks.close()

    async def exit_status(self) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                code = await self._process.wait()
                return self._signal(-code) if code < 0 else f"exit status {code}"
        return "it closed its connection"

    def _signal(self, number: int) -> str:
        """Returns the name of the signal that ended the process, and logs the process's last
        stacks.
        """
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        if stacks := self._last_stacks.read():
            logger.error(
                "%s ended the engine's process. The stacks of its threads:\n%s",
                name,
                stacks.rstrip(),
            )
        return name
