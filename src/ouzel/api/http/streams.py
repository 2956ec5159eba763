"""A stream goes out piece by piece, and says that it lives while there is nothing to say.

Rules
1. The response starts with the first piece, so that what fails before it has an honest status; or with the first
   comment, when no piece has come for `keepalive_s`: clients and proxies give up on silence.
2. While a piece or a comment is on its way nothing else is sent: at most one of them waits for the client to read.
3. One timer a stream looks after that. A piece costs no more than reading the clock.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from http import HTTPStatus

from starlette.types import Send

from ouzel.api.http.framing import Framing


class Streams:
    def __init__(self, keepalive_s: float) -> None:
        """No comments are sent with 0."""
        self._keepalive_s = keepalive_s

    async def send(
        self,
        pieces: AsyncGenerator[bytes, None],
        framing: Framing,
        send: Send,
        *,
        end: Callable[[], bytes],
    ) -> None:
        """Asks `end` for the last bytes when the pieces are over.

        An exception of theirs leaves the response open, for the error's frame, or not begun.
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
        self._comment: asyncio.Task[None] | None = None  # on its way
        self._timer: asyncio.TimerHandle | None = None
        if keepalive_s and framing.comment:
            self._look_after(keepalive_s)

    async def send(self, piece: bytes, *, more: bool = True) -> None:
        if self._comment is not None:
            await self._comment
        is_silent = (
            self._is_started and not piece
        )  # tokens without text, for example: the client hears nothing
        self._is_sending = True
        await self._send_piece(piece, more=more)
        if not is_silent:
            self._sent_at = self._loop.time()
        self._is_sending = False

    async def settle(self) -> None:
        """Sends no comment from now on, and waits for the one that is on its way."""
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

    def _look_after(self, delay_s: float) -> None:
        self._timer = self._loop.call_later(delay_s, self._look)

    def _look(self) -> None:
        silent_s = self._loop.time() - self._sent_at
        if silent_s < self._keepalive_s:
            self._look_after(self._keepalive_s - silent_s)
            return
        if self._comment is None and not self._is_sending:
            self._comment = self._loop.create_task(self._send_comment())
        self._look_after(self._keepalive_s)
