"""Connections are accepted as long as there is room, and while the system has descriptors for them."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from ouzel.api.http.server.connections import Connections, Wait

logger = logging.getLogger(__name__)

_AT_ONCE = 64  # accepted before others have their turn
_PAUSE_S = 0.5  # after the system has refused
_PAUSE_WHILE_FULL_S = 0.001  # after each for which another had to make way: a flood costs little
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
            timeouts_s = {
                "ssl_handshake_timeout": handshake_timeout_s,
                "ssl_shutdown_timeout": _SHUTDOWN_TIMEOUT_S,
            }
            self._timeouts_s = timeouts_s
        self._opening: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        listener.listen(backlog)
        self._loop.add_reader(self._fileno, self._accept)

    def close(self) -> None:
        self._loop.remove_reader(self._fileno)
        if self._pause is not None:
            self._pause.cancel()

    async def wait_closed(self) -> None:
        """Waits for those that were being opened."""
        if self._opening:
            await asyncio.wait(self._opening)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            is_full = not self._connections.has_room
            if is_full and self._opening and self._tls is None:
                return  # they are open in a moment, and then wait as others do
            try:
                accepted, _ = self._listener.accept()
            except _GONE:
                return
            except (
                OSError
            ) as error:  # no descriptors, or no memory: asking again at once would only cost time
                logger.warning("no connections are accepted for %g s: %s", _PAUSE_S, error.strerror)
                self._rest(_PAUSE_S)
                return
            if is_full and not self._connections.make_room():
                accepted.close()
            else:
                self._begin(accepted)
            if is_full:
                self._rest(_PAUSE_WHILE_FULL_S)
                return

    def _begin(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        task = self._loop.create_task(self._open(_Opening(accepted, self._connections)))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._fileno)
        self._pause = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._fileno, self._accept)

    async def _open(self, opening: "_Opening") -> None:
        make, accepted = self._make_protocol, opening.accepted
        try:
            await self._loop.connect_accepted_socket(
                make, accepted, ssl=self._tls, **self._timeouts_s
            )
        except OSError as error:  # the client has left, or speaks no TLS that we do, or none
            logger.debug("a connection was not opened: %s", error)
        finally:
            opening.end()


class _Opening:
    """A connection of which TLS is still being agreed on; without TLS for a moment."""

    def __init__(self, accepted: socket.socket, connections: Connections) -> None:
        self.accepted = accepted
        self._connections = connections
        connections.open.add(self)
        connections.move(self, None, Wait.HEAD)

    def end(self) -> None:
        self._connections.open.discard(self)
        self._connections.move(self, Wait.HEAD, None)

    def wait_is_over(self) -> None:
        """The client has had its time."""
        with suppress(OSError):  # where it has hung up already
            self.accepted.shutdown(socket.SHUT_RDWR)

    def close_for_newcomer(self) -> None:
        """Closes at once, for another connection."""
        self.wait_is_over()
        self.end()

    shutdown = wait_is_over  # with the server
