"""Makes MCP servers that do not keep to the protocol, over HTTP and as programs."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any  # JSON

from ouzel.hosted_tools.mcp.configured import trust_server
from ouzel.hosted_tools.mcp.records import LocalServer, McpServer, RemoteServer
from ouzel.hosted_tools.mcp.session import McpSession

Json = dict[str, Any]
MAX_BYTES = 100_000
SESSION = "mcp-session-id"
EVENTS = {"content-type": "text/event-stream"}
ANY: Json = {"type": "object"}
TOOL: Json = {"name": "t", "inputSchema": ANY}
_INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "hostile", "version": "1"},
}


@dataclass
class Answer:
    """An answer over HTTP; the connection is closed after pieces."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterator[bytes] = b""


@dataclass
class HostileServer:
    """Opens sessions as it should, then does as the test says."""

    call: Callable[[Json], Answer] = lambda message: reply(message, {"content": []})
    list_tools: Callable[[Json], Json] = lambda message: {"tools": [TOOL]}
    get: Callable[[], Answer] = lambda: Answer(405)
    has_old_transport: bool = False
    # methods of HTTP and of MCP, in the order in which they came
    requests: list[str] = field(default_factory=list)
    sent: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)

    def answer(self, method: str, message: Json) -> Answer:
        name = message.get("method")
        self.requests.append(method if name is None else name)
        if method == "GET":
            return Answer(200, EVENTS, self._one_stream()) if self.has_old_transport else self.get()
        match name:
            case "initialize":
                answer = reply(message, _INITIALIZED)
                answer.headers = {**answer.headers, SESSION: "s1"}
            case "tools/list":
                answer = reply(message, self.list_tools(message))
            case "tools/call":
                return self.call(message)
            case "server/discover":
                answer = send(message, error={"code": -32601, "message": "unknown"})
            case _:
                return Answer(202)
        if not self.has_old_transport:
            return answer
        assert isinstance(answer.body, bytes)
        self.sent.put_nowait(b"event: message\ndata: " + answer.body + b"\n\n")
        return Answer(202)

    async def _one_stream(self) -> AsyncIterator[bytes]:
        yield b"event: endpoint\ndata: /post\n\n"
        while True:
            yield await self.sent.get()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the session has closed the connection
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; returns False after an answer that ends the connection."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines()
        headers = dict(line.split(": ", 1) for line in lines if line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        answer = self.answer(first.split()[0].upper(), json.loads(body or b"{}"))
        head = {**answer.headers}
        if isinstance(answer.body, bytes):
            head.setdefault("content-length", str(len(answer.body)))
        lines = [f"HTTP/1.1 {answer.status} x", *(f"{name}: {head[name]}" for name in head)]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        if isinstance(answer.body, bytes):
            writer.write(answer.body)
            await writer.drain()
            return len(answer.body) == int(head["content-length"])
        async for piece in answer.body:
            writer.write(piece)
            await writer.drain()
        return False


def send(message: Json, **fields: object) -> Answer:
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **fields}).encode()
    return Answer(200, {"content-type": "application/json"}, body)


def reply(message: Json, result: Json) -> Answer:
    return send(message, result=result)


def say(message: Json, text: str) -> Answer:
    return reply(message, {"content": [{"type": "text", "text": text}]})


async def repeat(piece: bytes) -> AsyncIterator[bytes]:
    while True:
        yield piece


@asynccontextmanager
async def open_session(
    server: McpServer, *, max_answer_bytes: int = MAX_BYTES
) -> AsyncIterator[McpSession]:
    session = McpSession(
        server, trust_server(server), timeout_s=60.0, max_answer_bytes=max_answer_bytes
    )
    try:
        yield session
    finally:
        await session.close()


@contextmanager
def running_hostile(hostile: HostileServer) -> Iterator[str]:
    """Runs a server in a thread and yields its URL."""
    loop = asyncio.new_event_loop()

    async def start() -> asyncio.Server:
        return await asyncio.start_server(hostile.serve, "127.0.0.1", 0)

    listening = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
    finally:
        loop.call_soon_threadsafe(listening.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


@asynccontextmanager
async def open_hostile(
    hostile: HostileServer, *, is_operators: bool = False, max_answer_bytes: int = MAX_BYTES
) -> AsyncIterator[McpSession]:
    listening = await asyncio.start_server(hostile.serve, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        path = "sse" if hostile.has_old_transport else "mcp"
        url = f"http://127.0.0.1:{port}/{path}"
        server = RemoteServer("hostile", url, is_operators=is_operators)
        async with open_session(server, max_answer_bytes=max_answer_bytes) as session:
            yield session


def hostile_program(call: str, **fields: Any) -> LocalServer:
    """Returns a program that opens sessions, then runs the statements `call` for each call."""
    lines = call.splitlines()
    code = _PROGRAM.replace("        CALL", "\n".join(f"        {line}" for line in lines))
    return LocalServer("hostile", sys.executable, ("-c", code), **fields)


_PROGRAM = f"""
import json, os, sys, time
def reply(result):
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
def say(text):
    reply({{"content": [{{"type": "text", "text": text}}]}})
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        reply({_INITIALIZED!r})
    elif method == "tools/list":
        reply({{"tools": [{TOOL!r}]}})
    elif method == "tools/call":
        CALL
    elif "id" in message:
        error = {{"code": -32601, "message": "unknown"}}
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "error": error}}), flush=True)
"""
