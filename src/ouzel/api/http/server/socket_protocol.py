"""Makes uvicorn's WebSockets safe from clients that do not read or never finish.

`handshake.py` checks how they begin.
"""

import asyncio

from starlette.types import Message
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from ouzel.api.http.server.close_codes import INVALID_TEXT, SERVER_STOPS

_CLOSE_AFTER_S = 1.0


class SocketProtocol(WebSocketsSansIOProtocol):
    _unsent_pong = b""
    _message: bytearray  # the fragments received so far

    def shutdown(self) -> None:
        """Tells the application to close: uvicorn's method would cut off a drained answer."""
        if self.handshake_complete and not self.close_sent and self.initial_response is None:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": SERVER_STOPS})
        else:
            super().shutdown()

    async def send(self, message: Message) -> None:  # type: ignore[override]
        """Raises OSError if the client has left. uvicorn would log a warning for each message.

        A response instead of a WebSocket completes the handshake: uvicorn would log that as an
        error.
        """
        if message["type"] == "websocket.send" and self.transport.is_closing():
            raise BrokenPipeError("the client has left the WebSocket")
        await super().send(message)  # type: ignore[arg-type]
        if message["type"] == "websocket.http.response.body" and not message.get(
            "more_body", False
        ):
            self.handshake_complete = True

    def handle_ping(self) -> None:
        """Answers only the newest ping of a client that does not read, but sends pings for ever."""
        # the first call has the pongs of all pings that arrived together
        pongs = self.conn.data_to_send()
        if self.writable.is_set():
            self.transport.write(b"".join(pongs))
        elif pongs:
            self._unsent_pong = pongs[-1]

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unsent_pong:
            pong, self._unsent_pong = self._unsent_pong, b""
            self.transport.write(pong)

    def handle_cont(self, event: Frame) -> None:
        """Joins fragments as they arrive, because a fragment may be one byte long, or empty."""
        if self.frames:
            self._message, self.frames = bytearray(self.frames[0]), []
        self._message += event.data
        if event.fin:
            self.frames = [bytes(self._message)]
            del self._message
            self.send_receive_event_to_app()

    def send_receive_event_to_app(self) -> None:
        """Refuses text that is not UTF-8. uvicorn would log a traceback."""
        if self.curr_msg_data_type == "text" and not _is_utf8(self.frames[0]):
            self.conn.fail(INVALID_TEXT, "invalid UTF-8")
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._abort_if_unread()

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """Closes the connection after the application has ended."""
        super().on_task_complete(task)
        self._abort_if_unread()

    def _abort_if_unread(self) -> None:
        """Aborts the connection after a delay, if the client has not read all output by now.

        Unread output would keep the connection open.
        """
        if self.transport.get_write_buffer_size():
            self.loop.call_later(_CLOSE_AFTER_S, self.transport.abort)


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False
