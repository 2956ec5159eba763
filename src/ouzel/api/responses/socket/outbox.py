"""Events go to the client each in a text frame."""

import msgspec
from starlette.types import Send

from ouzel.api.http.exchange import ClientDisconnected
from ouzel.api.http.faults import make_fault
from ouzel.api.responses.socket.events import ErrorEvent

_encode = msgspec.json.Encoder().encode


class Outbox:
    """It belongs to one lane, which its events name."""

    def __init__(self, send: Send, stream_id: str | None) -> None:
        self.stream_id = stream_id
        self._send = send
        self._lane = (
            b"" if stream_id is None else b',"stream_id":"' + stream_id.encode() + b'"'
        )  # needs no escapes

    async def put(self, event: msgspec.Struct) -> None:
        await self.put_encoded(_encode(event))

    async def put_encoded(self, event: bytes) -> None:
        """Raises ClientDisconnected."""
        text = (event[:-1] + self._lane + b"}").decode()
        try:
            await self._send({"type": "websocket.send", "text": text})
        except OSError as error:  # so ASGI says that nobody is there
            raise ClientDisconnected from error

    async def put_error(self, error: BaseException) -> int:
        """Returns its status."""
        fault = make_fault(error)
        await self.put(ErrorEvent.of(fault))
        return fault.status
