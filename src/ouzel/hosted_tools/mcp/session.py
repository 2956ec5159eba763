"""Keeps a session with one MCP server: lists its tools, and calls them.

The connection is opened by the first use, so a response that calls nothing starts no program. When
a connection is lost, the next use opens another one; a call is never repeated.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from ouzel.config.media_hosts import AllowedHosts
from ouzel.extras import install_hint
from ouzel.hosted_tools.mcp.contents import InvalidTool, read_tool, write_result
from ouzel.hosted_tools.mcp.records import McpError, McpResult, McpServer, McpTool

if TYPE_CHECKING:
    from ouzel.hosted_tools.mcp.connection import Connection

logger = logging.getLogger(__name__)

_MAX_PAGES = 32
_MAX_TOOLS = 256
_MAX_LIST = 2_000_000  # characters of all tools together
_MAX_CONNECTIONS = 3


class McpSession:
    def __init__(
        self,
        server: McpServer,
        allowed: AllowedHosts,
        *,
        timeout_s: float,
        max_answer_bytes: int,
        programs: AbstractAsyncContextManager[None] | None = None,
        on_changed_tools: Callable[[], None] = lambda: None,
    ) -> None:
        """`timeout_s` limits the start and the list of tools, `max_answer_bytes` each message.

        `programs` limits the servers that run as programs at the same time. `on_changed_tools` is
        called when the server says that its tools have changed.
        """
        self._server = server
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_answer_bytes
        self._programs = programs
        self._on_changed_tools = on_changed_tools
        self._num_unfinished = 0  # requests that run, or have failed, or whose end is unknown
        self._connections: list[Connection] = []
        self._opening = asyncio.Lock()
        self._is_closed = False

    @property
    def is_reusable(self) -> bool:
        """Tells whether another response may use the session: its first connection is in order."""
        is_connected = len(self._connections) == 1 and self._connections[0].is_usable
        return is_connected and self._num_unfinished == 0 and not self._is_closed

    async def list_tools(self) -> list[McpTool]:
        """Returns the tools of the server; tools that cannot be offered are left out, with a log.

        Raises McpError.
        """
        self._num_unfinished += 1
        try:
            async with asyncio.timeout(self._timeout_s):
                tools = await self._list(await self._connect())
        except TimeoutError:
            raise self._error(f"does not answer within {self._timeout_s:g} s") from None
        self._num_unfinished -= 1
        return tools

    async def call(self, name: str, arguments: Mapping[str, object]) -> McpResult:
        """Calls a tool. The caller limits the time. Raises McpError."""
        self._num_unfinished += 1
        connection = await self._connect()
        result = write_result(await connection.call(name, arguments))
        self._num_unfinished -= 1
        return result

    async def close(self) -> None:
        """Ends the session; a server with a command ends with it."""
        self._is_closed = True
        await asyncio.gather(*(connection.close() for connection in self._connections))

    async def _connect(self) -> "Connection":
        """Returns the connection, or a new one if there is none or it is lost."""
        async with self._opening:
            if self._connections and self._connections[-1].is_usable:
                return self._connections[-1]
            if len(self._connections) == _MAX_CONNECTIONS:
                raise self._error(f"has lost {_MAX_CONNECTIONS} connections in this response")
            if self._connections:  # a program must end before another one takes its place
                await self._connections[-1].close()
            try:
                connection_class = await asyncio.to_thread(_import_connection)
            except ImportError as error:
                raise self._error(f"needs the extra mcp: {install_hint('mcp')}") from error
            if self._is_closed:
                raise self._error("is not connected any more")
            connection = connection_class(
                self._server,
                self._allowed,
                timeout_s=self._timeout_s,
                max_answer_bytes=self._max_answer_bytes,
                programs=self._programs,
                on_changed_tools=self._on_changed_tools,
            )
            self._connections.append(connection)
            return connection

    async def _list(self, connection: "Connection") -> list[McpTool]:
        found: dict[str, McpTool] = {}
        num_chars = 0
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await connection.list_page(cursor)
            for each in page.tools:
                try:
                    tool = read_tool(each)
                except InvalidTool as error:
                    logger.info("the MCP server %s: a tool %s", self._server.label, error)
                    continue
                if tool.name in found:
                    logger.info("the MCP server %s lists %r twice", self._server.label, tool.name)
                    continue
                found[tool.name] = tool
                num_chars += tool.num_chars
                if len(found) > _MAX_TOOLS or num_chars > _MAX_LIST:
                    raise self._error(
                        f"lists more than {_MAX_TOOLS} tools or {_MAX_LIST} characters"
                    )
            cursor = page.next_cursor
            if cursor is None:
                return list(found.values())
        raise self._error(f"lists its tools on more than {_MAX_PAGES} pages")

    def _error(self, complaint: str) -> McpError:
        return McpError(f"the MCP server {self._server.label!r} {complaint}")


def _import_connection() -> "type[Connection]":
    from ouzel.hosted_tools.mcp.connection import Connection  # noqa: PLC0415  slow, and an extra

    return Connection
