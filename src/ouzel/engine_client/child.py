"""The engine's child process: one thread reads commands, one writes events, and the main thread drives the engine.

The child lives no longer than its parent: its end of the socket reports the parent's death, and it exits.
Signals are the parent's business; the child ignores SIGINT and SIGTERM.
"""

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
from ouzel.types import EngineCommand, EngineEvent

logger = logging.getLogger(__name__)


def run_child(fd: int) -> None:
    """Runs the child process: one thread reads, one writes, and the main thread drives the engine."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    connection = socket.socket(fileno=fd)
    connection.set_inheritable(False)  # the parent sees this process end, whatever processes it has started
    reader = connection.makefile("rb")
    spec = msgspec.msgpack.decode(_read_frame(reader), type=EngineSpec)
    configure_logging(spec.log_level, spec.log_format)
    if spec.processors:
        os.sched_setaffinity(0, spec.processors)
    inbox: Inbox = SimpleQueue()
    outbox: SimpleQueue[EngineEvent | None] = SimpleQueue()
    threading.Thread(target=_read_commands, args=(reader, inbox), daemon=True).start()
    writer = threading.Thread(target=_write_events, args=(connection, outbox))
    writer.start()
    drive_engine(spec, inbox, outbox.put)
    outbox.put(None)
    writer.join()


def _read_frame(reader: BinaryIO) -> bytes:
    """Returns one frame, or exits: without its parent this process has no purpose."""
    try:
        header = reader.read(4)
        payload = reader.read(int.from_bytes(header, "big"))
    except ConnectionError:  # the parent was killed before it had read everything
        os._exit(0)
    if len(header) < 4 or not payload:
        os._exit(0)
    return payload


def _read_commands(reader: BinaryIO, inbox: Inbox) -> None:
    decoder = msgspec.msgpack.Decoder(list[EngineCommand])
    while True:
        inbox.put(decoder.decode(_read_frame(reader)))


def _write_events(connection: socket.socket, outbox: "SimpleQueue[EngineEvent | None]") -> None:
    """Encoding and sending happen beside the next forward pass, which does not hold the GIL."""
    try:
        while (event := outbox.get()) is not None:
            connection.sendall(frame(event))
    except BrokenPipeError:
        os._exit(0)  # the parent is gone
    except Exception:  # an engine that nobody hears must not go on
        logger.exception("the engine cannot report")
        os._exit(1)
