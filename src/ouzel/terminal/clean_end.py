"""Lets a long command remove its unfinished files when a signal ends it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)  # Ctrl-C raises KeyboardInterrupt by itself


@contextmanager
def clean_end() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise SystemExit with status 128 + number within the block.

    A signal that the caller ignores, as nohup ignores SIGHUP, stays ignored.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    handled = [number for number in _SIGNALS if before[number] != signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _raise_exit)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


def _raise_exit(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
