"""What the event loop does beside the main thread ends before it does."""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from ouzel.terminal_chat.loop_thread import LoopThread


def main_thread_waits() -> bool:
    """Tells whether the main thread is in `Condition.wait`, as it is while it waits for a future's result."""
    ident = threading.main_thread().ident
    assert ident is not None
    return sys._current_frames()[ident].f_code.co_name == "wait"


def test_a_context_that_is_interrupted_while_it_opens_is_left_first() -> None:
    steps: list[str] = []

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

    with pytest.raises(KeyboardInterrupt), LoopThread() as loop, loop.entered(opening()):
        steps.append("entered")
    assert steps == ["left"]
