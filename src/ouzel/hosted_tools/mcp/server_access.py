"""Gives responses access to MCP servers: to stored lists of tools, and to sessions."""

import asyncio
from collections.abc import Mapping, Sequence

from ouzel.config.media_hosts import AllowedHosts
from ouzel.hosted_tools.mcp.configured import trust_server
from ouzel.hosted_tools.mcp.program_slots import ProgramSlots
from ouzel.hosted_tools.mcp.records import (
    LocalServer,
    McpError,
    McpResult,
    McpServer,
    McpTool,
)
from ouzel.hosted_tools.mcp.session import McpSession
from ouzel.hosted_tools.mcp.tool_lists import ToolLists


class McpServers:
    """All MCP servers of this server; it has the lists and programs that outlive responses."""

    def __init__(
        self,
        allowed: AllowedHosts,
        *,
        timeout_s: float,
        max_answer_bytes: int,
        max_programs: int,
        max_list_age_s: float,
        program_idle_s: float,
    ) -> None:
        """`allowed` are the hosts of servers that clients may name.

        `McpSession`, `ToolLists` and `ProgramSlots` describe the other arguments.
        """
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_answer_bytes
        self._programs = ProgramSlots(max_programs, idle_s=program_idle_s, close=self.close_later)
        self._closing: set[asyncio.Task[None]] = set()
        self.lists = ToolLists(max_age_s=max_list_age_s)

    def access(self, server: McpServer, key_id: str | None) -> "ServerAccess":
        """Returns the access of one response of an API key. It must be closed."""
        return ServerAccess(self, server, key_id)

    def open_session(self, server: McpServer, key_id: str | None) -> McpSession:
        """Returns an idle session of a program for the key, or a new session."""
        is_program = isinstance(server, LocalServer)
        idle = self._programs.take(server.label, key_id) if is_program else None
        return idle or McpSession(
            server,
            trust_server(server) if server.is_operators else self._allowed,
            timeout_s=self._timeout_s,
            max_answer_bytes=self._max_answer_bytes,
            programs=self._programs,
            # A session of a program outlives the response, never the key.
            on_changed_tools=lambda: self.lists.drop(server, key_id),
        )

    def give_back(self, server: McpServer, key_id: str | None, session: McpSession) -> None:
        """Takes the session of a response that has ended."""
        if isinstance(server, LocalServer):
            self._programs.give_back(server.label, key_id, session)
        else:
            self.close_later(session)

    def close_later(self, session: McpSession) -> None:
        """Closes a session in a task of its own: a program may take a second to end."""
        task = asyncio.create_task(session.close(), name="the end of an MCP session")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Waits until all sessions are closed and their programs have ended."""
        self._programs.close()
        await asyncio.gather(*self._closing, return_exceptions=True)


class ServerAccess:
    """Lists and calls the tools of one server for one response; a session begins when needed."""

    def __init__(self, servers: McpServers, server: McpServer, key_id: str | None) -> None:
        self._servers = servers
        self._server = server
        self._key_id = key_id
        self._session: McpSession | None = None
        self._is_closed = False

    async def list_tools(self) -> Sequence[McpTool]:
        """Returns the tools, from a stored list if there is one. Raises McpError."""
        lists = self._servers.lists
        return await lists.find_or_list(self._server, self._key_id, self._ask_for_tools)

    async def call(self, name: str, arguments: Mapping[str, object]) -> McpResult:
        """Calls a tool. The caller limits the time. Raises McpError."""
        try:
            result = await self._open_session().call(name, arguments)
        except McpError:
            self._servers.lists.drop(self._server, self._key_id)
            raise
        if result.is_error:
            self._servers.lists.drop(self._server, self._key_id)
        return result

    def close(self) -> None:
        """Gives the session back."""
        self._is_closed = True
        if self._session is not None:
            self._servers.give_back(self._server, self._key_id, self._session)
            self._session = None

    async def _ask_for_tools(self) -> Sequence[McpTool]:
        return await self._open_session().list_tools()

    def _open_session(self) -> McpSession:
        if self._is_closed:
            raise McpError(f"the MCP server {self._server.label!r} is not connected any more")
        if self._session is None:
            self._session = self._servers.open_session(self._server, self._key_id)
        return self._session
