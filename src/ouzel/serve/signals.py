"""Turns SIGTERM, SIGINT and SIGHUP into events."""

import asyncio
import signal
from typing import Any  # results of tasks

_SAME_SIGNAL_S = 1.0


def stop_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Returns an event for the first SIGTERM or SIGINT, and one for a later signal.

    A program in between (uv, a shell) may pass on a signal that this process has already received,
    so a second signal within a second is ignored.
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
    """Returns an event for SIGHUP, which then no longer ends the process."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    return asked


async def wait_for_first(*tasks: asyncio.Task[Any]) -> None:
    """Waits until one of the tasks is done."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
