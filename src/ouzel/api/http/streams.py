"""Sends a stream piece by piece, with comments while there is nothing to send.

Rules
1. The response starts with the first piece, so that an error before it has its own status. It
   starts with a comment if no piece comes for `keepalive_s`: clients and proxies give up on
   silence.
2. While a piece or a comment is being sent, nothing else is sent: at most one of them waits for the
   client to read.
3. One timer per stream watches for silence. A piece costs no more than reading the clock.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from http import HTTPStatus

from starlette.types import Send

from ouzel.api.http.framing import Framing


class Streams:
    def __init__(self, keepalive_s: float) -> None:
        """`keepalive_s` 0 sends no comments."""
        self._keepalive_s = keepalive_s

    async def send(
        self,
        pieces: AsyncGenerator[bytes, None],
        framing: Framing,
        send: Send,
        *,
        end: Callable[[], bytes],
    ) -> None:
        """Sends the pieces, then the bytes that `end` returns.

        An exception from `pieces` leaves the response open for the error's frame, or not started.
        """
        stream = _Stream(framing, send, self._keepalive_s)
        async with aclosing(pieces):
            try:
                async for piece in pieces:
                    await stream.send(piece)
                await stream.send(end(), more=False)
            except asyncio.CancelledError:
                stream.cancel()
                raise
            finally:
                await stream.settle()


class _Stream:
    def __init__(self, framing: Framing, send: Send, keepalive_s: float) -> None:
        self._framing = framing
        self._send = send
        self._keepalive_s = keepalive_s
        self._loop = asyncio.get_running_loop()
        self._is_started = False
        self._is_sending = False
        self._sent_at = self._loop.time()
        self._comment: asyncio.Task[None] | None = None  # the comment that is being sent
        self._timer: asyncio.TimerHandle | None = None
        if keepalive_s and framing.comment:
            self._schedule_check(keepalive_s)

    async def send(self, piece: bytes, *, more: bool = True) -> None:
        if self._comment is not None:
            await self._comment
        # tokens without text, for example: the client receives nothing
        is_silent = self._is_started and not piece
        self._is_sending = True
        await self._send_piece(piece, more=more)
        if not is_silent:
            self._sent_at = self._loop.time()
        self._is_sending = False

    async def settle(self) -> None:
        """Stops the comments, and waits for a comment that is being sent."""
        if self._timer is not None:
            self._timer.cancel()
        if self._comment is not None:
            await asyncio.wait((self._comment,))

    def cancel(self) -> None:
        if self._comment is not None:
            self._comment.cancel()

    async def _send_piece(self, piece: bytes, *, more: bool) -> None:
        if not self._is_started:
            self._is_started = True
            await self._send(
                {
                    "type": "http.response.start",
                    "status": HTTPStatus.OK.value,
                    "headers": [*self._framing.headers],
                }
            )
        if piece or not more:
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})

    async def _send_comment(self) -> None:
        await self._send_piece(self._framing.comment, more=True)
        self._sent_at = self._loop.time()
        self._comment = None

    def _schedule_check(self, delay_s: float) -> None:
        self._timer = self._loop.call_later(delay_s, self._check_silence)

    def _check_silence(self) -> None:
        silent_s = self._loop.time() - self._sent_at
        if silent_s < self._keepalive_s:
            self._schedule_check(self._keepalive_s - silent_s)
            return
        if self._comment is None and not self._is_sending:
            self._comment = self._loop.create_task(self._send_comment())
        self._schedule_check(self._keepalive_s)
