"""Delays the close of a connection on which a refused client may still be sending.

An immediate close with unread input would reset the connection, and the client might never read the
error.
"""

import asyncio
from typing import TYPE_CHECKING

from starlette.types import Scope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_CLOSE_AFTER_S = 1.0


class DelayedClose:
    """Implements the part of a transport that an answer uses, with a delayed close."""

    def __init__(self, transport: asyncio.Transport, flow: FlowControl) -> None:
        self._transport = transport
        self._flow = flow

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        """Ends the output, and drops input until the client closes or the delay is over."""
        self._flow.resume_reading()
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
        asyncio.get_running_loop().call_later(_CLOSE_AFTER_S, self._transport.abort)


def make_last_cycle(
    protocol: "HttpToolsProtocol", scope: Scope, transport: asyncio.Transport
) -> RequestResponseCycle:
    """Returns the cycle of a request without a body, which is answered on `transport`."""
    cycle = RequestResponseCycle(
        scope=scope,  # type: ignore[arg-type]
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
