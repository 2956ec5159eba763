"""Runs an engine in a child process, with threads that read commands and write events.

The main thread drives the engine. The child ends with its parent: its end of the socket reports the
parent's death. The child ignores SIGINT and SIGTERM, which are for the parent. A fault in native
code (SIGSEGV, SIGFPE and the like) ends the child, which first writes its Python stacks into a pipe
of the parent.
"""

import faulthandler
import logging
import os
import signal
import socket
import threading
from queue import SimpleQueue
from typing import BinaryIO

import msgspec

from ouzel.engine.loop import EngineSpec, Inbox, drive_engine
from ouzel.engine_client.frames import frame
from ouzel.observability import configure_logging
from ouzel.types.engine_messages import EngineCommand, EngineEvent, EngineLoading

logger = logging.getLogger(__name__)

_decode_commands = msgspec.msgpack.Decoder(list[EngineCommand]).decode


def run_child(fd: int, stacks_fd: int) -> None:
    """Runs the child process; a fatal signal writes the stacks to `stacks_fd`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(stacks_fd, False)
    faulthandler.enable(stacks_fd)
    connection = socket.socket(fileno=fd)
    # Otherwise processes started here would hide the end of this one from the parent.
    connection.set_inheritable(False)
    reader = connection.makefile("rb")
    spec = msgspec.msgpack.decode(_read_frame(reader), type=EngineSpec)
    configure_logging(spec.log_level, spec.log_format)
    if spec.processors:
        os.sched_setaffinity(0, spec.processors)
    if spec.niceness:
        os.nice(spec.niceness)  # before other threads start: each thread has its own niceness
    inbox: Inbox = SimpleQueue()
    threading.Thread(target=_read_commands, args=(reader, inbox), daemon=True).start()
    outbox = Outbox(connection)
    drive_engine(spec, inbox, outbox.put)
    outbox.close()


def _read_frame(reader: BinaryIO) -> bytes:
    """Reads one frame; exits the process if the parent is gone."""
    try:
        header = reader.read(4)
        payload = reader.read(int.from_bytes(header, "big"))
    except ConnectionError:  # the parent was killed before it had read all
        os._exit(0)
    if len(header) < 4 or not payload:
        os._exit(0)
    return payload


def _read_commands(reader: BinaryIO, inbox: Inbox) -> None:
    while True:
        inbox.put(_decode_commands(_read_frame(reader)))


class Outbox:
    """Sends events from a thread, which encodes and sends beside the next forward pass.

    The forward pass does not hold the GIL. `put` sends a stage of the start before it returns,
    because the stage may end the process.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()  # one frame at a time
        self._waiting: SimpleQueue[EngineEvent | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._send_waiting)
        self._thread.start()

    def put(self, event: EngineEvent) -> None:
        if isinstance(event, EngineLoading):
            self._send(event)
        else:
            self._waiting.put(event)

    def close(self) -> None:
        """Returns when all events are sent."""
        self._waiting.put(None)
        self._thread.join()

    def _send_waiting(self) -> None:
        while (event := self._waiting.get()) is not None:
            self._send(event)

    def _send(self, event: EngineEvent) -> None:
        try:
            with self._lock:
                self._connection.sendall(frame(event))
        except BrokenPipeError:
            os._exit(0)  # the parent is gone
        except Exception:  # an engine without a listener must not continue
            logger.exception("the engine cannot send its events")
            os._exit(1)
