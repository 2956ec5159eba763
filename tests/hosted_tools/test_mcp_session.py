"""Sessions are tried with real MCP servers, honest and hostile."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.mcp.configured import trust_server
from ouzel.hosted_tools.mcp.records import LocalServer, McpError, McpServer, RemoteServer
from ouzel.hosted_tools.mcp.session import McpSession
from tests.hosted_tools.mcp_server import SECRET, KeyCheck, make_server, running
from tests.http_servers import http_server

PROGRAM = LocalServer("program", sys.executable, ("-m", "tests.hosted_tools.mcp_server"), {}, ".")
MAX_BYTES = 100_000


@asynccontextmanager
async def opened(
    server: McpServer, *allowed: str, timeout_s: float = 60.0
) -> AsyncIterator[McpSession]:
    hosts = read_media_hosts(allowed, "allowed_mcp_hosts") if allowed else trust_server(server)
    session = McpSession(server, hosts, timeout_s=timeout_s, max_answer_bytes=MAX_BYTES)
    try:
        yield session
    finally:
        await session.close()


@pytest.fixture(scope="module")
def http_port() -> Iterator[int]:
    with running(KeyCheck(make_server().streamable_http_app(), SECRET)) as port:
        yield port


@pytest.fixture(scope="module")
def sse_port() -> Iterator[int]:
    with running(make_server().sse_app()) as port:
        yield port


@pytest.fixture(params=["http", "sse", "program"])
def server(request: pytest.FixtureRequest) -> McpServer:
    if request.param == "program":
        return PROGRAM
    port = request.getfixturevalue(f"{request.param}_port")
    if request.param == "sse":
        return RemoteServer("sse", f"http://127.0.0.1:{port}/sse")
    return RemoteServer("http", f"http://127.0.0.1:{port}/mcp", {"Authorization": SECRET})


async def test_tools_are_listed_and_called(server: McpServer) -> None:
    async with opened(server) as session:
        tools = {tool.name: tool for tool in await session.list_tools()}
        assert tools.keys() == {"add", "fail", "hang", "flood"}
        assert tools["add"].is_read_only and not tools["fail"].is_read_only
        assert tools["add"].input_schema["required"] == ["a", "b"]
        result = await session.call("add", {"a": 2, "b": 3})
        assert (result.text, result.is_error) == ("the sum is 5", False)


async def test_a_failing_tool_is_an_error_with_its_text(server: McpServer) -> None:
    async with opened(server) as session:
        result = await session.call("fail", {})
    assert result.is_error
    assert result.text == "Error executing tool fail"


async def test_a_call_that_hangs_can_be_cancelled(server: McpServer) -> None:
    async with opened(server) as session:
        await session.list_tools()
        call = asyncio.create_task(session.call("hang", {}))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not (await session.call("add", {"a": 1, "b": 1})).is_error


async def test_calls_run_at_the_same_time(server: McpServer) -> None:
    async with opened(server) as session:
        results = await asyncio.gather(*(session.call("add", {"a": n, "b": 0}) for n in range(8)))
    assert [result.text for result in results] == [f"the sum is {n}" for n in range(8)]


async def test_a_session_may_be_closed_by_another_task(server: McpServer) -> None:
    session = McpSession(server, trust_server(server), timeout_s=60.0, max_answer_bytes=MAX_BYTES)
    await asyncio.create_task(session.list_tools())
    await asyncio.create_task(session.close())


async def test_a_session_that_nobody_used_closes() -> None:
    async with opened(PROGRAM):
        pass


async def test_a_missing_secret_is_named_by_its_status(http_port: int) -> None:
    server = RemoteServer("locked", f"http://127.0.0.1:{http_port}/mcp")
    async with opened(server) as session:
        with pytest.raises(McpError, match=r"the MCP server 'locked' .*401"):
            await session.list_tools()


async def test_an_answer_that_is_too_long_is_refused(http_port: int) -> None:
    url = f"http://127.0.0.1:{http_port}/mcp"
    async with opened(RemoteServer("a", url, {"Authorization": SECRET})) as session:
        with pytest.raises(McpError):
            await session.call("flood", {"num_chars": 10 * MAX_BYTES})


async def test_a_host_that_is_not_allowed_is_not_connected_to(http_port: int) -> None:
    server = RemoteServer("a", f"http://127.0.0.1:{http_port}/mcp", {"Authorization": SECRET})
    async with opened(server, "all") as session:
        with pytest.raises(McpError, match="allowed_mcp_hosts"):
            await session.list_tools()


def test_the_error_shows_no_secret() -> None:
    server = RemoteServer("a", "http://u:s3cret@example.org/", {"Authorization": SECRET})
    assert "s3cret" not in repr(server)


def answer_with(
    status: int, headers: dict[str, str], body: bytes = b""
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_DELETE = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


JSON = {"content-type": "application/json"}
HOSTILE: dict[str, Callable[[int], type[BaseHTTPRequestHandler]]] = {
    "redirect to another host": lambda port: answer_with(
        307, {"location": f"http://localhost:{port}/mcp"}
    ),
    "no JSON": lambda port: answer_with(200, JSON, b"<html>"),
    "nonsense": lambda port: answer_with(200, JSON, b'{"jsonrpc":"2.0","id":99,"result":[]}'),
    "endless": lambda port: answer_with(200, JSON, b" " * (2 * MAX_BYTES)),
    "error": lambda port: answer_with(500, {}),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_server_is_an_error_and_nothing_more(name: str, http_port: int) -> None:
    with http_server(HOSTILE[name](http_port)) as port:
        server = RemoteServer("hostile", f"http://127.0.0.1:{port}/mcp")
        async with opened(server, timeout_s=1.0) as session:
            with pytest.raises(McpError, match="the MCP server 'hostile'"):
                await session.list_tools()


async def test_programs_wait_for_one_another() -> None:
    programs = asyncio.Semaphore(1)
    sessions = [
        McpSession(
            PROGRAM,
            trust_server(PROGRAM),
            timeout_s=60.0,
            max_answer_bytes=MAX_BYTES,
            programs=programs,
        )
        for _ in range(2)
    ]
    await sessions[0].list_tools()
    waiting = asyncio.create_task(sessions[1].list_tools())
    await asyncio.sleep(0)
    assert programs.locked() and not waiting.done()
    await sessions[0].close()
    assert len(await waiting) == 4
    await sessions[1].close()
    assert not programs.locked()


async def test_a_program_that_does_not_exist_is_an_error() -> None:
    async with opened(LocalServer("none", "/no/such/program")) as session:
        with pytest.raises(McpError, match="the MCP server 'none'"):
            await session.list_tools()


async def test_a_program_that_ends_at_once_is_an_error() -> None:
    program = LocalServer("short", sys.executable, ("-c", "print('no protocol')"))
    async with opened(program, timeout_s=10.0) as session:
        with pytest.raises(McpError, match="the MCP server 'short'"):
            await session.list_tools()
