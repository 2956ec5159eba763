"""What the event loop does beside the main thread ends before it does."""

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from ouzel.terminal_chat.loop_thread import LoopThread


def test_a_context_that_is_interrupted_while_it_opens_is_left_first() -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def opening() -> AsyncGenerator[None, None]:
        try:
            await asyncio.sleep(0.1)  # by then the main thread waits
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.Event().wait()
            yield
        finally:
            await asyncio.sleep(0.1)  # as what closes an engine takes
            steps.append("left")

    with pytest.raises(KeyboardInterrupt), LoopThread() as loop, loop.entered(opening()):
        steps.append("entered")
    assert steps == ["left"]
