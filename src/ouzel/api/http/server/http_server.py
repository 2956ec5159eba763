"""Runs the application on uvicorn, with our parts where clients could harm others."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from ouzel.api.http.server.acceptor import Acceptor
from ouzel.api.http.server.connections import MAX_CONNECTIONS, Connections
from ouzel.api.http.server.http_protocol import make_protocol_class
from ouzel.config import LimitsConfig

_PING_EVERY_S = 20.0


class HttpServer(uvicorn.Server):
    """Serves on open sockets, without uvicorn's signal handlers and log lines of requests."""

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
        # uvicorn's own set of connections is replaced
        self.server_state.connections = self._connections.open  # type: ignore[assignment]
        self._header_timeout_s = limits.header_timeout_s
        self._tls = tls
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Raises OSError if another process uses an address."""
        await self.lifespan.startup()
        assert sockets is not None, "the sockets must be open"
        self.servers = [self._make_acceptor(listener) for listener in sockets]  # type: ignore[misc]
        self.started = True
        self.listening.set()

    def _make_acceptor(self, listener: socket.socket) -> Acceptor:
        loop = asyncio.get_running_loop()

        def make_protocol() -> asyncio.Protocol:
            return self.config.http_protocol_class(  # type: ignore[call-arg]
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
        """Installs nothing: the command's own handlers drain the server first."""
        yield


def _config(
    app: ASGIApp, limits: LimitsConfig, connections: Connections, *, has_lifespan: bool
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="auto",  # uvloop, if it is installed
        http=make_protocol_class(connections, limits),
        # a name, because only a server that starts imports the class
        ws="ouzel.api.http.server.socket_protocol:SocketProtocol",
        ws_max_size=limits.max_body_bytes,
        ws_ping_interval=min(_PING_EVERY_S, limits.write_timeout_s),
        ws_ping_timeout=limits.write_timeout_s,
        # Compression costs more time than it saves on messages of a few hundred bytes.
        ws_per_message_deflate=False,
        lifespan="on" if has_lifespan else "off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,  # seconds; requests have been drained before
    )
