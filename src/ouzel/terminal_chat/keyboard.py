"""Handles keys while no line is read: Ctrl-C interrupts the running work, other keys wait unseen for the next line."""

import os
import select
import signal
import sys
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any  # what termios makes lists of


@contextmanager
def on_interrupt(function: Callable[[], None]) -> Generator[None, None, None]:
    """Calls the function at Ctrl-C, and nothing else happens; only in the main thread."""

    def call(number: int, frame: FrameType | None) -> None:
        function()

    before = signal.signal(signal.SIGINT, call)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_MAX_PENDING_BYTES = 4096  # more than a terminal holds of a line


class Keyboard:
    """Controls the keyboard: keys are not echoed into an answer, and Enter is not turned into a line feed."""

    def __init__(self) -> None:
        self._file = sys.stdin.fileno()
        self._ordinary = termios.tcgetattr(self._file)

    @contextmanager
    def taken(self) -> Generator[str, None, None]:
        """Silences the keyboard while the block runs, and yields the text that was typed before.

        The terminal has made line feeds of the carriage returns in that text, which are Enter again.
        """
        with self.silenced():
            has_pending = bool(select.select([self._file], [], [], 0)[0])
            pending = os.read(self._file, _MAX_PENDING_BYTES) if has_pending else b""
            yield pending.decode(errors="replace").replace("\n", "\r")

    @contextmanager
    def silenced(self) -> Generator[None, None, None]:
        with self._changed(self._silent()):
            yield

    @contextmanager
    def ordinary(self) -> Generator[None, None, None]:
        """Is as it was, for a program that reads it itself."""
        with self._changed(self._ordinary):
            yield

    def forget(self) -> None:
        """Drops keys that nobody has read yet: they were no answer to a question that had not been asked."""
        termios.tcflush(self._file, termios.TCIFLUSH)

    @contextmanager
    def _changed(self, attributes: list[Any]) -> Generator[None, None, None]:
        before = termios.tcgetattr(self._file)
        termios.tcsetattr(self._file, termios.TCSANOW, attributes)
        try:
            yield
        finally:
            termios.tcsetattr(self._file, termios.TCSANOW, before)

    def _silent(self) -> list[Any]:
        attributes = list(self._ordinary)
        attributes[0] &= ~termios.ICRNL
        attributes[3] &= ~(termios.ECHO | termios.ICANON)  # signals are made all the same
        return attributes


@dataclass(frozen=True, slots=True)
class Typist:
    """A person at a keyboard, and the text that they typed before the program read it."""

    keyboard: Keyboard
    typed: str
