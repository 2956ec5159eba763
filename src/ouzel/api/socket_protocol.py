"""uvicorn's WebSockets, with two ends of their own: the server's, and that of a client that reads nothing."""

import asyncio

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ouzel.api.close_codes import SERVER_STOPS

_LAST_WORDS_S = 1.0


class SocketProtocol(WebSocketsSansIOProtocol):
    def shutdown(self) -> None:
        """Tells the application, which closes; uvicorn's own would cut off the end of what has just been drained."""
        if self.handshake_complete and not self.close_sent and self.initial_response is None:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": SERVER_STOPS})
        else:
            super().shutdown()

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """The application has ended; what nobody reads would hold the connection open for ever."""
        super().on_task_complete(task)
        if self.transport.get_write_buffer_size():
            self.loop.call_later(_LAST_WORDS_S, self.transport.abort)
