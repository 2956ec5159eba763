"""Accepts connections while the server has room for them and the system has descriptors."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from ouzel.api.http.server.connections import Connections, Wait

logger = logging.getLogger(__name__)

_AT_ONCE = 64  # connections accepted before other tasks run
_PAUSE_S = 0.5  # the pause after the system has refused a connection
# The pause after each connection that displaced another: a flood costs little.
_PAUSE_WHILE_FULL_S = 0.001
_GONE = (BlockingIOError, InterruptedError, ConnectionAbortedError)
_SHUTDOWN_TIMEOUT_S = 2.0  # limit for the client's half of the end of TLS


class Acceptor:
    """Accepts the connections of one listener. Closing it leaves accepted connections open."""

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
        """Starts to listen. Raises OSError if another process uses the address."""
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
        """Waits for the connections that are still being opened."""
        if self._opening:
            await asyncio.wait(self._opening)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            is_full = not self._connections.has_room
            if is_full and self._opening and self._tls is None:
                # These connections are open in a moment; then one of them can be closed.
                return
            try:
                accepted, _ = self._listener.accept()
            except _GONE:
                return
            except OSError as error:
                # There are no descriptors, or no memory: an immediate retry would fail as well.
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
        # The client has left, does not speak TLS, or supports none of our versions.
        except OSError as error:
            logger.debug("a connection was not opened: %s", error)
        finally:
            opening.end()


class _Opening:
    """A connection during its TLS handshake. Without TLS, the handshake takes no time."""

    def __init__(self, accepted: socket.socket, connections: Connections) -> None:
        self.accepted = accepted
        self._connections = connections
        connections.open.add(self)
        connections.move(self, None, Wait.HEAD)

    def end(self) -> None:
        self._connections.open.discard(self)
        self._connections.move(self, Wait.HEAD, None)

    def end_wait(self) -> None:
        """Closes the connection after its time limit."""
        with suppress(OSError):  # the client may have closed the connection already
            self.accepted.shutdown(socket.SHUT_RDWR)

    def close_for_newcomer(self) -> None:
        """Closes at once, to make room for a new connection."""
        self.end_wait()
        self.end()

    shutdown = end_wait  # called when the server stops
