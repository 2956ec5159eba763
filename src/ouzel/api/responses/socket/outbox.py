"""Sends events to the client, each in a text frame."""

import msgspec
from starlette.types import Send

from ouzel.api.http.exchange import ClientDisconnected
from ouzel.api.http.faults import make_fault
from ouzel.api.responses.socket.events import ErrorEvent

_encode = msgspec.json.Encoder().encode


class Outbox:
    """Sends the events of one lane, and adds the lane's name to each event."""

    def __init__(self, send: Send, stream_id: str | None) -> None:
        self.stream_id = stream_id
        self._send = send
        # the name of a lane needs no escapes
        self._lane = b"" if stream_id is None else b',"stream_id":"' + stream_id.encode() + b'"'

    async def put(self, event: msgspec.Struct) -> None:
        await self.put_encoded(_encode(event))

    async def put_encoded(self, event: bytes) -> None:
        """Sends an event that is encoded as JSON. Raises ClientDisconnected."""
        text = (event[:-1] + self._lane + b"}").decode()
        try:
            await self._send({"type": "websocket.send", "text": text})
        except OSError as error:  # ASGI's signal that the client has left
            raise ClientDisconnected from error

    async def put_error(self, error: BaseException) -> int:
        """Sends an error event, and returns its status."""
        fault = make_fault(error)
        await self.put(ErrorEvent.of(fault))
        return fault.status
