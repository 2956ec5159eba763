"""Sends the events of a session to the client, each in a text frame."""

import msgspec
from starlette.types import Send

from ouzel.api.http.exchange import ClientDisconnected
from ouzel.api.http.faults import make_fault
from ouzel.api.realtime.events import ErrorEvent, ServerEvent

_encode = msgspec.json.Encoder().encode


class Outbox:
    def __init__(self, send: Send) -> None:
        self._send = send

    async def put(self, event: ServerEvent) -> None:
        """Sends an event. Raises ClientDisconnected."""
        try:
            await self._send({"type": "websocket.send", "text": _encode(event).decode()})
        except OSError as error:  # ASGI's signal that the client has left
            raise ClientDisconnected from error

    async def put_error(self, error: BaseException, event_id: str | None = None) -> None:
        """Sends an error event about the client's message with that id."""
        await self.put(ErrorEvent.about(make_fault(error), event_id))
