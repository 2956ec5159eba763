"""Runs an MCP server of the `mcp` package: over HTTP, over SSE, or as a program."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
from starlette.types import ASGIApp, Receive, Scope, Send

SECRET = "Bearer s3cret"


def make_server() -> MCPServer:
    server = MCPServer("tests")

    @server.tool(description="Adds.", annotations=ToolAnnotations(read_only_hint=True))
    def add(a: int, b: int) -> str:
        return f"the sum is {a + b}"

    @server.tool(description="Fails.")
    def fail() -> str:
        raise ValueError("out of paper")

    @server.tool(description="Never ends.")
    async def hang() -> str:
        await asyncio.Event().wait()
        return ""

    @server.tool(description="Answers with many characters.")
    def flood(num_chars: int) -> str:
        return "x" * num_chars

    return server


class KeyCheck:
    """Refuses requests without the secret, and counts the requests."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self._app = app
        self._secret = secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "http" and headers.get(b"authorization") != self._secret.encode():
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body"})
            return
        await self._app(scope, receive, send)


@contextmanager
def running(app: ASGIApp) -> Iterator[int]:
    """Yields the port of a server with the application."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


if __name__ == "__main__":
    make_server().run("stdio")
