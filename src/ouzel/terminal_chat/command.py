"""Runs `ouzel chat`: talks with the model of a server or of this process, also in a pipe."""

import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from types import FrameType
from typing import NoReturn

from ouzel.terminal_chat.flags import ChatFlags, read_flags
from ouzel.terminal_chat.keyboard import Keyboard, Typist


def run(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit status.

    Raises OuzelError, KeyboardInterrupt if Ctrl-C ends the command, and SystemExit.
    """
    return run_chat(*read_flags(arguments))


def run_chat(flags: ChatFlags, rest: Sequence[str]) -> int:
    """Runs a chat with options that were read; `rest` holds MODEL and the options of serve.

    Returns the exit status. Raises like `run`.
    """
    # The encoding of a terminal may lack characters of an answer.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, _end)
    try:
        _run(flags, rest)
    except _Terminated:
        return 128 + signal.SIGTERM
    return 0


def _run(flags: ChatFlags, rest: Sequence[str]) -> None:
    """Runs the session. In a terminal, it first takes over the keyboard, without echo.

    A person may type while the session is being imported, which is slow.
    """
    with ExitStack() as stack:
        typist = None
        if flags.prompt is None and sys.stdin.isatty() and sys.stdout.isatty():
            keyboard = Keyboard()
            typist = Typist(keyboard, stack.enter_context(keyboard.taken()))
        from ouzel.terminal_chat.session import run_session  # noqa: PLC0415  slow to import

        run_session(flags, rest, typist)


class _Terminated(BaseException):
    """SIGTERM has arrived; a BaseException, so that handlers of errors of tools let it pass."""


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Handles SIGTERM like Ctrl-C, so that the engine is closed and the terminal is restored."""
    raise _Terminated
