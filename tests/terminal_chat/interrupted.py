"""A program whose main thread is interrupted while it waits for a context to open in its loop's thread.

It prints the steps that it has gone through. The signal goes to this process instead of the process that runs the
tests, so that a test can report how this process has ended.
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
    """Tells whether the main thread is in `Condition.wait`, as it is while it waits for a future's result."""
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
        await asyncio.sleep(0.1)  # as what closes an engine takes
        steps.append("left")


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever has started this process
    try:
        with LoopThread() as loop, loop.entered(opening()):
            steps.append("entered")
    except KeyboardInterrupt:
        steps.append("interrupted")
    sys.stdout.write(" ".join(steps))


if __name__ == "__main__":
    main()
