"""Keeps the stream of a request alive while its model is being loaded.

The response starts with status 200 and a comment if the wait takes long. The endpoint's own start
of the response is then left out, and a later error becomes a frame of the stream.
"""

import asyncio
from contextlib import suppress

from starlette.types import Message, Send

from ouzel.api.http.framing import Framing


class WaitingStream:
    """Sends comments until `stop`, every `keepalive_s` seconds; 0 sends none."""

    def __init__(self, framing: Framing, send: Send, keepalive_s: float) -> None:
        self._framing = framing
        self._send = send
        self._keepalive_s = keepalive_s
        self._has_started = False
        self._sending: asyncio.Future[None] | None = None  # the last comment
        self._commenting = (
            asyncio.create_task(self._comment()) if keepalive_s and framing.comment else None
        )

    async def stop(self) -> None:
        """Ends the comments, before the endpoint sends anything."""
        if self._commenting is None:
            return
        self._commenting.cancel()
        with suppress(asyncio.CancelledError):
            await self._commenting
        if self._sending is not None:
            await self._sending  # half a comment must not be sent

    async def send(self, message: Message) -> None:
        """Sends a message of the endpoint, without a second start of the response."""
        if not (self._has_started and message["type"] == "http.response.start"):
            await self._send(message)

    async def _comment(self) -> None:
        while True:
            await asyncio.sleep(self._keepalive_s)
            self._sending = asyncio.ensure_future(self._send_comment())
            await asyncio.shield(self._sending)

    async def _send_comment(self) -> None:
        if not self._has_started:
            self._has_started = True
            await self._send(
                {"type": "http.response.start", "status": 200, "headers": [*self._framing.headers]}
            )
        await self._send(
            {"type": "http.response.body", "body": self._framing.comment, "more_body": True}
        )
