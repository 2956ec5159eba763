"""Writes the standard error of an MCP server into the log, line by line and bounded."""

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

logger = logging.getLogger(__name__)

_MAX_LINES = 200  # later lines are read and dropped
_PIECE = 65536
_MAX_LINE = 1000


@contextmanager
def open_log_pipe(label: str) -> Iterator[TextIO]:
    """Yields a file for the standard error of a process; its lines go into the log."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    reader = _Reader(reading, label)
    loop = asyncio.get_running_loop()
    loop.add_reader(reading, reader.read)
    try:
        with os.fdopen(writing, "w") as file:
            yield file
    finally:
        loop.remove_reader(reading)
        reader.read()
        os.close(reading)


class _Reader:
    def __init__(self, descriptor: int, label: str) -> None:
        self._descriptor = descriptor
        self._label = label
        self._rest = b""
        self._num_left = _MAX_LINES

    def read(self) -> None:
        try:
            data = os.read(self._descriptor, _PIECE)
        except BlockingIOError:
            return
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_MAX_LINE]
        for line in lines:
            if self._num_left > 0:
                self._num_left -= 1
                text = line[:_MAX_LINE].decode(errors="replace")
                logger.info("the MCP server %s: %r", self._label, text)
