"""Runs servers of pictures on this machine; a server answers every request with the same bytes."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from ouzel.config import MediaConfig
from ouzel.outbound.hosts import Resolve
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import MediaPart
from ouzel.prompts.media.picture import Picture
from tests.prompts.media.files import PATH

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class PictureServer:
    port: int = 0
    num_connections: int = 0
    heads: list[bytes] = field(default_factory=list)  # the heads of the requests
    num_open: int = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(
    answer: bytes | Answer, ssl_context: ssl.SSLContext | None = None
) -> AsyncIterator[PictureServer]:
    server = PictureServer()
    talks: set[asyncio.Task[None] | None] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        server.num_connections += 1
        server.num_open += 1
        try:
            server.heads.append(await reader.readuntil(b"\r\n\r\n"))
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left
        finally:
            server.num_open -= 1
            writer.close()

    listener = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=ssl_context)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        running = [talk for talk in talks if talk is not None]
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def http(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def loader(
    resolve: Resolve | None = None, ssl_context: ssl.SSLContext | None = None, **options: object
) -> MediaLoader:
    """Returns a loader that trusts no certificate: reading the system's certificates is slow."""
    config = msgspec.convert(options, MediaConfig)
    ssl_context = ssl_context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return MediaLoader(config, resolve=resolve, ssl_context=ssl_context)


async def load(media: MediaLoader, *urls: str) -> list[Picture]:
    """Loads the pictures as one request."""
    try:
        return await media.load([MediaPart(PATH, url) for url in urls])
    finally:
        media.close()
