"""Connections are accepted as long as there is room, and while the system has descriptors for them."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from ouzel.api.http.connections import Connections

logger = logging.getLogger(__name__)

_AT_ONCE = 64  # accepted before others have their turn
_PAUSE_S = 0.5  # after the system has refused
_PAUSE_WHILE_FULL_S = 0.004  # after one for which another had to make way: a flood costs little
_GONE = (BlockingIOError, InterruptedError, ConnectionAbortedError)
_SHUTDOWN_TIMEOUT_S = 2.0  # for a client's half of the end of TLS


class Acceptor:
    """It closes with the server; what has been accepted stays open."""

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        connections: Connections,
        tls: ssl.SSLContext | None,
        *,
        handshake_timeout_s: float,
        backlog: int,
    ) -> None:
        """Listens. Raises OSError where the address is another's."""
        self._listener = listener
        self._fileno = listener.fileno()
        self._make_protocol = make_protocol
        self._connections = connections
        self._tls = tls
        self._timeouts_s: dict[str, float] = {}
        if tls is not None:
            timeouts_s = {"ssl_handshake_timeout": handshake_timeout_s, "ssl_shutdown_timeout": _SHUTDOWN_TIMEOUT_S}
            self._timeouts_s = timeouts_s
        self._opening: dict[asyncio.Task[None], socket.socket] = {}
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        listener.listen(backlog)
        self._loop.add_reader(self._fileno, self._accept)

    def close(self) -> None:
        self._loop.remove_reader(self._fileno)
        if self._pause is not None:
            self._pause.cancel()
        for accepted in self._opening.values():
            _hang_up(accepted)

    async def wait_closed(self) -> None:
        """Waits for those that were being opened."""
        if self._opening:
            await asyncio.wait(self._opening)

    def _accept(self) -> None:
        is_full = False
        for _ in range(_AT_ONCE):
            if is_full:
                self._rest(_PAUSE_WHILE_FULL_S)
                return
            is_full = not self._connections.has_room
            if is_full and self._opening and self._tls is None:
                return  # they are open in a moment, and then wait as others do
            try:
                accepted, _ = self._listener.accept()
            except _GONE:
                return
            except OSError as error:  # no descriptors, or no memory: asking again at once would only cost time
                logger.warning("no connections are accepted for %g s: %s", _PAUSE_S, error.strerror)
                self._rest(_PAUSE_S)
                return
            if is_full and not (self._drop_oldest_opening() or self._connections.make_room()):
                accepted.close()
                continue
            accepted.setblocking(False)
            opening = self._loop.create_task(self._open(accepted))
            self._opening[opening] = accepted
            self._connections.num_opening += 1
            opening.add_done_callback(self._opened)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._fileno)
        self._pause = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._fileno, self._accept)

    async def _open(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, accepted, ssl=self._tls, **self._timeouts_s)
        except OSError as error:  # the client has left, or speaks no TLS that we do, or none
            logger.debug("a connection was not opened: %s", error)

    def _opened(self, opening: asyncio.Task[None]) -> None:
        self._opening.pop(opening, None)
        self._connections.num_opening -= 1

    def _drop_oldest_opening(self) -> bool:
        """Ends a client's TLS that has taken longest to be agreed on."""
        if self._tls is None or not self._opening:
            return False
        _hang_up(self._opening.pop(next(iter(self._opening))))
        return True


def _hang_up(accepted: socket.socket) -> None:
    with suppress(OSError):  # where its client has already
        accepted.shutdown(socket.SHUT_RDWR)
