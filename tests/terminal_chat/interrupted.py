"""Interrupts a main thread that waits for a context to open in its loop's thread.

The program prints each step that it reaches. The signal goes to this process, not to the
process that runs the tests, so that a test can report how this process ended.
"""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ouzel.terminal_chat.loop_thread import LoopThread

steps: list[str] = []


def main_thread_waits() -> bool:
    """Tells whether the main thread is in `Condition.wait`, where it waits for a future."""
    ident = threading.main_thread().ident
    assert ident is not None
    return sys._current_frames()[ident].f_code.co_name == "wait"


@asynccontextmanager
async def opening() -> AsyncGenerator[None, None]:
    try:
        while not main_thread_waits():
            await asyncio.sleep(0.005)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        await asyncio.Event().wait()
        yield
    finally:
        await asyncio.sleep(0.1)  # closing an engine takes time, too
        steps.append("left")


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent process may ignore SIGINT
    try:
        with LoopThread() as loop, loop.entered(opening()):
            steps.append("entered")
    except KeyboardInterrupt:
        steps.append("interrupted")
    sys.stdout.write(" ".join(steps))


if __name__ == "__main__":
    main()
