"""SIGTERM, SIGINT and SIGHUP become events."""

import asyncio
import signal
from typing import Any  # tasks of any result

_SAME_SIGNAL_S = 1.0


def stop_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Returns events for the first SIGTERM or SIGINT, and for a later one that asks to hurry.

    A runner in between (uv, a shell) may pass on the signal that we already have: what follows at once is the same.
    """
    stopping, force_stop = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    first_at = 0.0

    def note() -> None:
        nonlocal first_at
        if not stopping.is_set():
            first_at = loop.time()
            stopping.set()
        elif loop.time() - first_at > _SAME_SIGNAL_S:
            force_stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, note)
    return stopping, force_stop


def hangup_signals() -> asyncio.Event:
    """Returns an event for SIGHUP, which ends the process no more."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    return asked


async def first_of(*tasks: asyncio.Task[Any]) -> None:
    """Waits until one of them is done."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
