"""A server that answers requests with bytes of the test's own, and closes the connection.

The answers say that it closes: a client that used the connection again would lose a race.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

Answers = bytes | Callable[[str, bytes], bytes]  # the same for all, or by path and body


@dataclass
class CannedServer:
    answer: Answers
    url: str = ""
    heads: list[str] = field(default_factory=list)  # heads of the received requests
    bodies: list[bytes] = field(default_factory=list)

    async def reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        self.heads.append(head)
        lengths = [
            int(line[15:]) for line in head.splitlines() if line.startswith("content-length:")
        ]
        self.bodies.append(await reader.readexactly(sum(lengths)))
        path = head.split(" ")[1]
        writer.write(
            self.answer if isinstance(self.answer, bytes) else self.answer(path, self.bodies[-1])
        )
        await writer.drain()
        writer.close()


@asynccontextmanager
async def canned_server(
    answer: Answers, *, tls: ssl.SSLContext | None = None, unix_socket: Path | None = None
) -> AsyncGenerator[CannedServer, None]:
    canned = CannedServer(answer)
    if unix_socket is not None:
        server: asyncio.Server = await asyncio.start_unix_server(canned.reply, unix_socket)
        canned.url = f"unix:{unix_socket}"
    else:
        server = await asyncio.start_server(canned.reply, "127.0.0.1", 0, ssl=tls)
        scheme = "http" if tls is None else "https"
        canned.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        yield canned


def event_stream(*events: str) -> bytes:
    """Returns an answer whose chunks are these events."""
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
        b"connection: close\r\n\r\n"
    )
    chunks = [f"data: {event}\n\n".encode() for event in events]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def json_answer(status: str, body: str) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body.encode())}\r\nconnection: close\r\n\r\n"
    )
    return (head + body).encode()
