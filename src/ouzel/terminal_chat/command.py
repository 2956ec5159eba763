"""`ouzel chat` talks with a model: of a server, or one that this process loads; in a terminal, or in a pipe."""

import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from types import FrameType
from typing import NoReturn

from ouzel.terminal_chat.flags import ChatFlags, read_flags
from ouzel.terminal_chat.keyboard import Keyboard, Typist


def run(arguments: Sequence[str]) -> int:
    """Raises OuzelError, KeyboardInterrupt where Ctrl-C ends it, and SystemExit."""
    flags, rest = read_flags(arguments)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may know fewer characters
    signal.signal(signal.SIGTERM, _end)
    try:
        _run(flags, rest)
    except _Terminated:
        return 128 + signal.SIGTERM
    return 0


def _run(flags: ChatFlags, rest: Sequence[str]) -> None:
    """Takes the keyboard before anything that is slow: a person may type while the model loads."""
    with ExitStack() as stack:
        typist = None
        if flags.prompt is None and sys.stdin.isatty() and sys.stdout.isatty():
            keyboard = Keyboard()
            typist = Typist(keyboard, stack.enter_context(keyboard.taken()))
        from ouzel.terminal_chat.session import run_session  # noqa: PLC0415  slow to import, and `--help` needs none of it

        run_session(flags, rest, typist)


class _Terminated(BaseException):
    """SIGTERM has come; what catches the errors and exits of a tool lets it pass."""


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Ends as Ctrl-C does, so that the engine is closed and the terminal is as it was."""
    raise _Terminated
