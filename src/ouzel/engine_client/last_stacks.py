"""Passes the Python stacks of a process that a fault such as SIGSEGV ends, through a pipe."""

import os
from io import FileIO

_MAX_BYTES = 1 << 16  # the size of a pipe


class LastStacks:
    """Both ends of the pipe; the writing end only until the process has started."""

    def __init__(self) -> None:
        self._reader, self._writer = map(_open_end, os.pipe(), ("rb", "wb"))

    @property
    def writer_fd(self) -> int:
        return self._writer.fileno()

    def close_writer(self) -> None:
        self._writer.close()

    def read(self) -> str:
        """Returns the stacks; the empty string if the process wrote nothing."""
        return (self._reader.read(_MAX_BYTES) or b"").decode(errors="replace")

    def close(self) -> None:
        self._reader.close()


def _open_end(fd: int, mode: str) -> FileIO:
    """Opens one end of the pipe without blocking: a full pipe must not delay the end of the
    process.
    """
    os.set_blocking(fd, False)
    return FileIO(fd, mode)
