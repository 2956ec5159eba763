"""`ouzel chat` talks with a model: of a server, or one that this process loads; in a terminal, or in a pipe."""

import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from ouzel.cli.chat_flags import read_flags


def run(arguments: Sequence[str]) -> int:
    """Raises OuzelError, KeyboardInterrupt where Ctrl-C ends it, and SystemExit."""
    flags, rest = read_flags(arguments)
    from ouzel.cli.chat_session import run_session  # noqa: PLC0415  slow to import, and `--help` needs none of it

    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may know fewer characters
    signal.signal(signal.SIGTERM, _end)
    try:
        run_session(flags, rest)
    except _Terminated:
        return 128 + signal.SIGTERM
    return 0


class _Terminated(BaseException):
    """SIGTERM has come; what catches the errors and exits of a tool lets it pass."""


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Ends as Ctrl-C does, so that the engine is closed and the terminal is as it was."""
    raise _Terminated
