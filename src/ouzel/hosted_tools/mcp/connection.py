"""Keeps one connection with an MCP server, in a task of its own.

The library binds a connection to the task that opens it. A task of its own therefore opens the
connection, keeps it and closes it; the methods may be called in any task. This file and the files
that it imports are imported for the first connection only, because the library takes most of a
second.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import httpx2
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
)

from ouzel.config.media_hosts import AllowedHosts
from ouzel.errors import STOPS
from ouzel.hosted_tools.mcp.exchanges import make_client
from ouzel.hosted_tools.mcp.faults import Faults, describe_failure
from ouzel.hosted_tools.mcp.incoming import NeededMessages
from ouzel.hosted_tools.mcp.program import run_program
from ouzel.hosted_tools.mcp.records import LocalServer, McpError, McpServer, RemoteServer
from ouzel.outbound.http_transport import CheckedTransport

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

logger = logging.getLogger(__name__)
# The library writes a traceback for each message that it cannot read. A hostile server would fill
# the log; all errors reach the callers as exceptions too.
logging.getLogger("mcp").setLevel(logging.CRITICAL)

Result = TypeVar("Result")
_ANSWERS_IN_A_STREAM = 16  # a stream of events may have so many times the bytes of an answer
_CLOSING_S = 5.0
_NO_SUCH_METHOD = (404, 405)  # answers of servers that have the older HTTP transport only
_SESSION_ENDED = "Session terminated"  # the library's message for a session that the server forgot


class Connection:
    def __init__(
        self,
        server: McpServer,
        allowed: AllowedHosts,
        *,
        timeout_s: float,
        max_answer_bytes: int,
        programs: AbstractAsyncContextManager[None] | None,
        on_changed_tools: Callable[[], None],
    ) -> None:
        """Begins to open the connection.

        `timeout_s` limits the time to reach the host, `max_answer_bytes` each message, and
        `programs` the servers that run as programs at the same time. `on_changed_tools` is called
        when the server says that its tools have changed.
        """
        self._server = server
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_answer_bytes
        self._programs = programs
        self._on_changed_tools = on_changed_tools
        self._faults = Faults()
        self._is_lost = False
        self._closing = asyncio.Event()
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep(), name=f"MCP server {server.label}")

    @property
    def is_usable(self) -> bool:
        return not (self._is_lost or self._faults.is_over or self._task.done())

    async def list_page(self, cursor: str | None) -> ListToolsResult:
        """Returns one page of the list of tools. Raises McpError."""
        return await self._ask(lambda client: client.list_tools(cursor=cursor))

    async def call(self, name: str, arguments: Mapping[str, object]) -> CallToolResult:
        """Calls a tool. Raises McpError."""
        params = CallToolRequestParams(name=name, arguments=dict(arguments))
        return await self._ask(partial(_call, request=CallToolRequest(params=params)))

    async def close(self) -> None:
        """Closes the connection; a server with a command ends with it."""
        self._closing.set()
        if not self._client.done():
            self._task.cancel()
        _, still_open = await asyncio.wait({self._task}, timeout=_CLOSING_S)
        for task in still_open:
            task.cancel()
            await asyncio.wait({task})
        if self._client.done() and not self._client.cancelled():
            self._client.exception()  # it was reported where it was awaited

    async def _ask(self, work: Callable[[Client], Awaitable[Result]]) -> Result:
        try:
            client = await asyncio.shield(self._client)
            return await work(client)
        except (McpError, *STOPS):
            raise
        except Exception as error:
            self._is_lost |= isinstance(error, MCPError) and _tells_of_a_lost_session(error)
            raise self._describe(error) from error

    async def _keep(self) -> None:
        """Opens the connection, and keeps it open until `close`."""
        try:
            async with AsyncExitStack() as stack:
                self._client.set_result(await self._open(stack))
                await self._closing.wait()
        except STOPS:
            self._client.cancel()
            raise
        except BaseException as error:
            # Broad: the library raises groups of exceptions, and nobody awaits this task.
            failure = self._describe(error)
            if self._client.done():
                logger.info("%s", failure)
            else:
                self._client.set_exception(failure)

    async def _open(self, stack: AsyncExitStack) -> Client:
        server = self._server
        if isinstance(server, LocalServer):
            if self._programs is not None:
                await stack.enter_async_context(self._programs)
            program = run_program(server, self._faults, max_message_bytes=self._max_answer_bytes)
            return await self._enter(program, stack)
        if httpx2.URL(server.url).path.rstrip("/").endswith("/sse"):
            return await self._enter(self._old_transport(server), stack)
        try:
            return await self._enter(self._new_transport(server), stack)
        except STOPS:
            raise
        except Exception:
            if self._faults.status not in _NO_SUCH_METHOD:
                raise
        return await self._enter(self._old_transport(server), stack)

    async def _enter(
        self, transport: "AbstractAsyncContextManager[TransportStreams]", stack: AsyncExitStack
    ) -> Client:
        """Opens the session on a transport."""
        # No answers of earlier sessions are used: the keys of clients differ.
        self._faults.is_over = False  # an earlier transport may have failed
        needed = _leave_out_messages(transport, self._faults, self._on_changed_tools)
        client = Client(needed, cache=None)
        return await stack.enter_async_context(client)

    @asynccontextmanager
    async def _new_transport(self, server: RemoteServer) -> "AsyncIterator[TransportStreams]":
        async with (
            self._make_client(server, has_one_stream=False) as client,
            streamable_http_client(
                server.url, http_client=client, max_sse_event_size=self._max_answer_bytes
            ) as streams,
        ):
            yield streams

    def _old_transport(
        self, server: RemoteServer
    ) -> "AbstractAsyncContextManager[TransportStreams]":
        def make(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return self._make_client(server, has_one_stream=True)

        return sse_client(server.url, httpx_client_factory=make)

    def _make_client(self, server: RemoteServer, *, has_one_stream: bool) -> httpx2.AsyncClient:
        transport = CheckedTransport(
            self._allowed,
            connect_timeout_s=self._timeout_s,
            max_answer_bytes=self._max_answer_bytes,
            max_stream_bytes=self._max_answer_bytes * _ANSWERS_IN_A_STREAM,
        )
        return make_client(
            transport,
            server.headers,
            self._faults,
            timeout_s=self._timeout_s,
            has_one_stream=has_one_stream,
        )

    def _describe(self, error: BaseException) -> McpError:
        text = describe_failure(error, self._faults, self._server)
        return McpError(f"the MCP server {self._server.label!r} {text}")


async def _call(client: Client, request: CallToolRequest) -> CallToolResult:
    """Calls a tool; the result is not compared with the schema that the server gave for it.

    The schema may have regular expressions that take minutes, and the model can read any result.
    """
    try:
        return await client.session.send_request(request, CallToolResult)
    except MCPError as error:
        if error.code != HEADER_MISMATCH:
            raise
    # The server has refused the call: it needs headers that are named in the list of tools.
    await client.list_tools()
    return await client.session.send_request(request, CallToolResult)


@asynccontextmanager
async def _leave_out_messages(
    transport: "AbstractAsyncContextManager[TransportStreams]",
    faults: Faults,
    on_changed_tools: Callable[[], None],
) -> "AsyncIterator[TransportStreams]":
    async with transport as (received, sent):
        yield NeededMessages(received, faults, on_changed_tools), sent


def _tells_of_a_lost_session(error: MCPError) -> bool:
    is_closed = error.code == CONNECTION_CLOSED and error.message == "Connection closed"
    return is_closed or error.message == _SESSION_ENDED
