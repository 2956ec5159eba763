"""uvicorn's HTTP is made safe here from clients that read nothing."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class HttpProtocol(HttpToolsProtocol):
    """A client that takes nothing of what waits for it for `write_timeout_s` counts as gone.

    uvicorn would keep its connection, its answer and the place of its request for as long as it likes.
    """

    write_timeout_s: float
    _watching: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """More waits to be sent than the transport likes to hold."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_watching()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_watching()

    def _watch(self) -> None:
        num_bytes = self.transport.get_write_buffer_size()
        self._watching = self.loop.call_later(self.write_timeout_s, self._look_again, num_bytes)

    def _look_again(self, num_bytes_before: int) -> None:
        if self.transport.get_write_buffer_size() < num_bytes_before:
            self._watch()
        else:
            self.transport.abort()  # an ordinary close would wait for the client too

    def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None


def http_protocol(write_timeout_s: float) -> type[HttpProtocol]:
    """Returns a class that has the timeout, for uvicorn takes a class and makes its objects."""
    return type("HttpProtocol", (HttpProtocol,), {"write_timeout_s": write_timeout_s})
