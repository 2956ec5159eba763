"""Handles keys while no line is read.

Ctrl-C interrupts the running work; other keys wait, without an echo, for the next line.
"""

import os
import select
import signal
import sys
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any  # the items of termios' lists


@contextmanager
def on_interrupt(function: Callable[[], None]) -> Generator[None, None, None]:
    """Calls the function at Ctrl-C instead of raising KeyboardInterrupt; main thread only."""

    def call(number: int, frame: FrameType | None) -> None:
        function()

    before = signal.signal(signal.SIGINT, call)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_MAX_PENDING_BYTES = 4096  # a terminal holds no more bytes of a line


class Keyboard:
    """Controls the keyboard; while it is silenced, keys have no echo, and Enter is a raw key."""

    def __init__(self) -> None:
        self._file = sys.stdin.fileno()
        self._ordinary = termios.tcgetattr(self._file)

    @contextmanager
    def taken(self) -> Generator[str, None, None]:
        """Silences the keyboard while the block runs, and yields the text that was typed before.

        In this text the terminal has converted Enter to line feeds; they become "Enter" again.
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
        """Restores the original settings while the block runs, for a program that reads keys."""
        with self._changed(self._ordinary):
            yield

    def forget(self) -> None:
        """Drops unread keys, so that keys typed before a question do not answer the question."""
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
        attributes[3] &= ~(termios.ECHO | termios.ICANON)  # Ctrl-C still sends a signal
        return attributes


@dataclass(frozen=True, slots=True)
class Typist:
    """The keyboard, and the text that was typed before the program read the keyboard."""

    keyboard: Keyboard
    typed: str
