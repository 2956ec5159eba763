"""Runs a program at a terminal and reads its screen."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyte

NUM_LINES = 30


class Terminal:
    def __init__(self, process: subprocess.Popen[bytes], descriptor: int, columns: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self._screen = pyte.Screen(columns, NUM_LINES)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def lines(self) -> list[str]:
        """Returns the lines of the screen down to the last line with text."""
        lines = [line.rstrip() for line in self._screen.display]
        return lines[: max((number for number, line in enumerate(lines, 1) if line), default=0)]

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def read_until(self, is_there: Callable[[list[str]], bool]) -> None:
        """Reads until `is_there` holds for the lines; fails if the program ends before."""
        while not is_there(self.lines):
            assert self._read(), f"the program has ended; on its screen stands {self.lines}"

    def read_to_the_end(self) -> int:
        """Reads until the program ends and returns its exit status."""
        while self._read():
            pass
        return self.process.wait()

    def _read(self) -> bool:
        try:
            content = os.read(self._descriptor, 4096)
        except OSError:  # Linux raises this when the other end is closed
            return False
        self._stream.feed(content)
        return bool(content)


@contextmanager
def at_terminal(
    command: Sequence[str], environment: Mapping[str, str] = os.environ, *, columns: int = 100
) -> Iterator[Terminal]:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", NUM_LINES, columns, 0, 0))
    attributes = termios.tcgetattr(follower)
    attributes[3] &= ~termios.ECHO  # the terminal does not echo the input
    termios.tcsetattr(follower, termios.TCSANOW, attributes)
    process = subprocess.Popen(
        command,
        env={**environment, "TERM": "xterm"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    try:
        yield Terminal(process, leader, columns)
    finally:
        process.kill()
        process.wait()
        os.close(leader)
