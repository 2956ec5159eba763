"""Disconnects a client that reads nothing of its answer for a while.

uvicorn would hold the connection, the answer and the request's place for ever.
"""

import asyncio


class WriteWatch:
    """Watches the unsent bytes of one client, from `begin` to `end`."""

    def __init__(self, transport: asyncio.Transport, write_timeout_s: float) -> None:
        self._transport = transport
        self._write_timeout_s = write_timeout_s
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        if self._timer is None:
            num_bytes = self._transport.get_write_buffer_size()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._write_timeout_s, self._check_progress, num_bytes)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_progress(self, num_bytes_before: int) -> None:
        self._timer = None
        if self._transport.get_write_buffer_size() < num_bytes_before:
            self.begin()
        else:
            self._transport.abort()  # an ordinary close would wait for the client too
