"""Runs `ouzel chat` in a terminal: presses its keys and reads its screen, drawn by `pyte`."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyte

ENTER, CTRL_C, CTRL_D, TAB, UP, ALT_ENTER = "\r", "\x03", "\x04", "\t", "\x1b[A", "\x1b\r"
# A new session has no terminal until it takes one; only then is Ctrl-C a signal.
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, sys.argv[1:])"
)


class _Screen(pyte.HistoryScreen):
    """A screen that answers the question for the cursor's position, as terminals do."""

    def __init__(self, columns: int, lines: int, keyboard: int) -> None:
        super().__init__(columns, lines, history=100_000, ratio=0.5)
        self._keyboard = keyboard

    def write_process_input(self, data: str) -> None:
        os.write(self._keyboard, data.encode())


class TerminalProgram:
    def __init__(
        self, arguments: list[str], environment: Mapping[str, str], columns: int, lines: int
    ) -> None:
        self._master, slave = pty.openpty()
        self._set_size(columns, lines)
        self._screen = _Screen(columns, lines, self._master)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self.raw = b""  # the whole output of the program
        command = [
            sys.executable,
            "-c",
            _TAKE_TERMINAL,
            sys.executable,
            "-m",
            "ouzel",
            "chat",
            *arguments,
        ]
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def enter(self, line: str) -> None:
        """Types a line once the prompt is there."""
        self.wait_for_prompt()
        self.press(line + ENTER)

    def resize(self, columns: int, lines: int) -> None:
        with self._lock:
            self._screen.resize(lines, columns)
            self._set_size(columns, lines)  # the kernel sends SIGWINCH

    def wait_for(self, text: str, times: int = 1) -> str:
        """Waits until the text was written so many times; returns the screen with the lines that
        can be scrolled back.
        """
        while (seen := self.seen()).count(text) < times:
            assert self.process.poll() is None or self.seen().count(text) >= times, (
                f"{text!r} never came; the screen:\n{seen}"
            )
            time.sleep(0.02)
        return seen

    def wait_for_prompt(self) -> str:
        """Waits until the last line is an empty prompt."""
        while self.last_line() != ">":
            assert self.process.poll() is None, f"the program ended:\n{self.seen()}"
            time.sleep(0.02)
        return self.seen()

    def wait_for_end(self) -> int:
        status = self.process.wait()
        self._reader.join()
        return status

    def seen(self) -> str:
        with self._lock:
            return "\n".join(
                line.rstrip()
                for line in [*map(self._text, self._screen.history.top), *self._screen.display]
            )

    def last_line(self) -> str:
        lines = [line for line in self.seen().split("\n") if line.strip()]
        return lines[-1] if lines else ""

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        os.close(self._master)

    def _text(self, line: Mapping[int, pyte.screens.Char]) -> str:
        return "".join(line[column].data for column in range(max(line, default=-1) + 1))

    def _read(self) -> None:
        with suppress(OSError):  # the program has ended
            while received := os.read(self._master, 65536):
                with self._lock:
                    self.raw += received
                    self._stream.feed(received)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


@contextmanager
def chatting(
    *arguments: str, state: Path, columns: int = 80, lines: int = 24, **variables: str
) -> Iterator[TerminalProgram]:
    """Starts the program and ends it on exit; `state` is the directory of its history.

    It does not wait for the prompt.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    environment |= {"TERM": "xterm-256color", "XDG_STATE_HOME": str(state), **variables}
    program = TerminalProgram([*arguments], environment, columns, lines)
    try:
        yield program
    finally:
        program.close()
