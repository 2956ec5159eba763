"""uvicorn serves the application by its fast parts, and ours where clients could hurt others."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from ouzel.api.http.server.acceptor import Acceptor
from ouzel.api.http.server.connections import MAX_CONNECTIONS, Connections
from ouzel.api.http.server.http_protocol import http_protocol
from ouzel.config import LimitsConfig

_PING_EVERY_S = 20.0


class HttpServer(uvicorn.Server):
    """Listens on sockets it is given. It leaves out uvicorn's signal handlers, and its log line for each request."""

    def __init__(
        self,
        app: ASGIApp,
        limits: LimitsConfig,
        tls: ssl.SSLContext | None = None,
        *,
        has_lifespan: bool = True,
    ) -> None:
        self._connections = Connections(
            limits.max_connections or MAX_CONNECTIONS,
            header_timeout_s=limits.header_timeout_s,
            idle_timeout_s=limits.idle_timeout_s,
        )
        super().__init__(_config(app, limits, self._connections, has_lifespan=has_lifespan))
        self.server_state.connections = self._connections.open  # type: ignore[assignment]  # uvicorn's own set
        self._header_timeout_s = limits.header_timeout_s
        self._tls = tls
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Raises OSError where an address is another's."""
        await self.lifespan.startup()
        assert sockets is not None, "the listener is given"
        self.servers = [self._acceptor(listener) for listener in sockets]  # type: ignore[misc]  # closes as one does
        self.started = True
        self.listening.set()

    def _acceptor(self, listener: socket.socket) -> Acceptor:
        loop = asyncio.get_running_loop()

        def make_protocol() -> asyncio.Protocol:
            return self.config.http_protocol_class(  # type: ignore[call-arg]  # it is ours
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
                _loop=loop,
            )

        return Acceptor(
            listener,
            make_protocol,
            self._connections,
            self._tls,
            handshake_timeout_s=self._header_timeout_s,
            backlog=self.config.backlog,
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The command's own handlers drain first, and do not raise the signal again."""
        yield


def _config(
    app: ASGIApp, limits: LimitsConfig, connections: Connections, *, has_lifespan: bool
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="auto",  # uvloop where it is installed
        http=http_protocol(connections, limits),
        ws="ouzel.api.http.server.socket_protocol:SocketProtocol",  # by name: only a server that starts imports it
        ws_max_size=limits.max_body_bytes,
        ws_ping_interval=min(_PING_EVERY_S, limits.write_timeout_s),
        ws_ping_timeout=limits.write_timeout_s,
        ws_per_message_deflate=False,  # costs more time than it saves on messages of a few hundred bytes
        lifespan="on" if has_lifespan else "off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,  # seconds; requests have been drained before
    )
