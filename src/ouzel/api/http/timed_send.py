"""Limits the time of a send to a client that reads nothing."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Message, Send

from ouzel.api.http.exchange import ClientDisconnected


@contextmanager
def send_within(send: Send, timeout_s: float) -> Iterator[Send]:
    """Yields a `send` that raises ClientDisconnected after `timeout_s` without progress.

    Else such a client would hold its place for ever. One timer watches all sends of the block,
    because a timer for each send would cost more than the send.
    """
    loop, block = asyncio.get_running_loop(), asyncio.current_task()
    assert block is not None
    held_since: float | None = None
    is_late = False
    timer: asyncio.TimerHandle

    def watch() -> None:
        nonlocal timer, is_late
        now = loop.time()
        due = now + timeout_s if held_since is None else held_since + timeout_s
        if due > now:
            timer = loop.call_at(due, watch)
        else:
            is_late = True
            block.cancel()

    async def send_or_leave(message: Message) -> None:
        nonlocal held_since
        held_since = loop.time()
        try:
            await send(message)
        except asyncio.CancelledError:
            if not is_late:
                raise
            block.uncancel()
            raise ClientDisconnected from None
        finally:
            held_since = None

    timer = loop.call_later(timeout_s, watch)
    try:
        yield send_or_leave
    finally:
        timer.cancel()
