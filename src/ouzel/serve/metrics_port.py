"""Serves metrics and health checks on a port of their own, apart from the clients."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
from starlette.types import ASGIApp

from ouzel.api.http.server.http_server import HttpServer
from ouzel.config import LimitsConfig
from ouzel.options.invalid_option import CannotListen
from ouzel.serve.descriptors import MAX_WATCHING
from ouzel.serve.listener import Listener
from ouzel.serve.signals import wait_for_first


@asynccontextmanager
async def serve_metrics_port(
    app: ASGIApp, limits: LimitsConfig, listener: Listener | None
) -> AsyncGenerator[None, None]:
    """Serves `app` on the listener, if there is one, while the block runs. Raises CannotListen."""
    if listener is None:
        yield
        return
    try:
        listener.socket.listen()
    except OSError as error:  # another process took the port while the model loaded
        raise CannotListen(f"cannot listen on {listener.address}: {error.strerror}") from error
    server = HttpServer(
        app, msgspec.structs.replace(limits, max_connections=MAX_WATCHING), has_lifespan=False
    )
    serving = asyncio.create_task(server.serve(sockets=[listener.socket]))
    await wait_for_first(serving, asyncio.create_task(server.listening.wait()))
    sys.stdout.write(f"\nMetrics and health checks are at {listener.url}\n")
    try:
        yield
    finally:
        server.should_exit = True
        await serving
