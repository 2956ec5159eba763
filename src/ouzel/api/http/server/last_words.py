"""A connection on which a refused client may still be sending is closed a moment late.

Closed at once, with bytes that nobody has read, it would be reset, and the client might never see why.
"""

import asyncio
from typing import TYPE_CHECKING

from starlette.types import Scope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_CLOSE_AFTER_S = 1.0


class LastWords:
    """Has as much of a transport as an answer needs."""

    def __init__(self, transport: asyncio.Transport, flow: FlowControl) -> None:
        self._transport = transport
        self._flow = flow

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        """Says that nothing more comes, and drops what the client sends until it closes too, or is late."""
        self._flow.resume_reading()
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
        asyncio.get_running_loop().call_later(_CLOSE_AFTER_S, self._transport.abort)


def last_cycle(
    protocol: "HttpToolsProtocol", scope: Scope, transport: asyncio.Transport
) -> RequestResponseCycle:
    """A request that has no body, and is answered on this transport."""
    cycle = RequestResponseCycle(
        scope=scope,  # type: ignore[arg-type]  # Starlette's type is a wider one
        transport=transport,
        flow=protocol.flow,
        logger=protocol.logger,
        access_logger=protocol.access_logger,
        access_log=protocol.access_log,
        default_headers=protocol.server_state.default_headers,
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=False,
        on_response=protocol.on_response_complete,
    )
    cycle.more_body = False
    cycle.message_event.set()
    return cycle
