"""Reads the messages of one WebSocket until either side closes it, or until it is too old."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from starlette.types import Receive, Send

from ouzel.api.http.errors import SocketTooOld
from ouzel.api.http.exchange import ClientDisconnected
from ouzel.api.http.server.close_codes import NORMAL_END, SERVER_STOPS
from ouzel.api.http.timed_send import send_within
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest


class SocketWork(Protocol):
    """The work that the messages of a WebSocket began."""

    async def idle(self) -> None:
        """Returns as soon as no work is left."""
        ...

    def close(self) -> None:
        """Cancels the work that is left."""
        ...


class SocketLife:
    """Takes an accepted WebSocket, and serves it from its first message to its end."""

    def __init__(self, limits: LimitsConfig, receive: Receive, send: Send) -> None:
        self._limits = limits
        self._receive = receive
        self._send = send
        self._is_too_old = False

    async def serve(
        self,
        begin: Callable[[asyncio.TaskGroup], SocketWork],
        read: Callable[[Send], Awaitable[int]],
        tell_error: Callable[[Send, SocketTooOld], Awaitable[object]],
    ) -> None:
        """Returns at the end of the connection, and cancels its work then.

        `read` takes messages until the end of the connection, and returns the close code.
        `tell_error` sends the error of a connection that is too old.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                work = begin(tasks)
                ageing = tasks.create_task(self._age(work, tell_error))
                with self.sending() as send:
                    code = await read(send)
                if code == SERVER_STOPS:
                    await work.idle()
                    await self._close(SERVER_STOPS)
                ageing.cancel()
                work.close()
        except* ClientDisconnected:
            pass

    async def receive_text(self) -> str | int | None:
        """Returns the text of a message, None for a binary message, or the close code."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            code: int = message.get("code", NORMAL_END)
            return code
        text: str | None = message.get("text")
        return text

    def check_age(self) -> None:
        """Raises SocketTooOld if the connection takes no new work."""
        if self._is_too_old:
            raise SocketTooOld(self._limits.websocket_lifetime_s)

    @contextmanager
    def sending(self) -> Iterator[Send]:
        """Yields a `send` for the current task, which is cancelled if the client reads nothing."""
        with send_within(self._send, self._limits.write_timeout_s) as send:
            yield send

    async def _age(
        self, work: SocketWork, tell_error: Callable[[Send, SocketTooOld], Awaitable[object]]
    ) -> None:
        await asyncio.sleep(self._limits.websocket_lifetime_s)
        self._is_too_old = True
        await work.idle()
        with self.sending() as send:
            await tell_error(send, SocketTooOld(self._limits.websocket_lifetime_s))
        await self._close(NORMAL_END)

    async def _close(self, code: int) -> None:
        try:
            await self._send({"type": "websocket.close", "code": code})
        except OSError as error:  # ASGI's signal that the client has left
            raise ClientDisconnected from error


def encode_text(text: str | None) -> bytes:
    """Returns the bytes of a message. Raises InvalidRequest for a binary message."""
    if text is None:
        raise InvalidRequest("a message must be text, given a binary one")
    return text.encode()
