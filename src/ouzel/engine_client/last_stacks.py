"""A pipe for the Python stacks that a process writes when a fault such as SIGSEGV ends it."""

import os
from io import FileIO

_MAX_BYTES = 1 << 16  # as much as a pipe holds


class LastStacks:
    """Holds both ends of the pipe; the writing end only until the process has been started with it."""

    def __init__(self) -> None:
        self._reader, self._writer = map(_opened, os.pipe(), ("rb", "wb"))

    @property
    def writer_fd(self) -> int:
        return self._writer.fileno()

    def close_writer(self) -> None:
        self._writer.close()

    def read(self) -> str:
        """Returns the empty string where the process wrote nothing."""
        return (self._reader.read(_MAX_BYTES) or b"").decode(errors="replace")

    def close(self) -> None:
        self._reader.close()


def _opened(fd: int, mode: str) -> FileIO:
    """Returns one end of the pipe as a file that does not block: a full pipe must not keep the process from ending."""
    os.set_blocking(fd, False)
    return FileIO(fd, mode)
