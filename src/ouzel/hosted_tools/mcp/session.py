"""Keeps a session with one MCP server.

The library binds a session to the task that opens it. A task of its own therefore opens the
session, keeps it and closes it; the methods may be called in any task. This is the only file that
imports `mcp`, which takes a second: it is imported when the first session opens.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any  # Any: contents of messages

from ouzel.config.media_hosts import AllowedHosts
from ouzel.errors import STOPS
from ouzel.extras import install_hint
from ouzel.hosted_tools.mcp.log_pipe import open_log_pipe
from ouzel.hosted_tools.mcp.records import (
    LocalServer,
    McpError,
    McpResult,
    McpServer,
    McpTool,
    RemoteServer,
)

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport

logger = logging.getLogger(__name__)

_MAX_PAGES = 32
_MAX_TOOLS = 256
_MAX_DESCRIPTION = 10_000  # characters
_MAX_SCHEMA = 100_000  # characters of JSON
_MAX_NAME = 128
_CLOSING_S = 5.0
_MAX_REASON = 300


class McpSession:
    def __init__(
        self,
        server: McpServer,
        allowed: AllowedHosts,
        *,
        timeout_s: float,
        max_answer_bytes: int,
        programs: asyncio.Semaphore | None = None,
    ) -> None:
        """Begins to open the session.

        `timeout_s` limits the start and the list of tools, `max_answer_bytes` each message, and
        `programs` the servers that run as programs at the same time.
        """
        self._programs = programs
        self._server = server
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_answer_bytes
        self._refused_status: int | None = None  # the newest status of 400 or more
        self._closing = asyncio.Event()
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep(), name=f"MCP server {server.label}")

    async def list_tools(self) -> list[McpTool]:
        """Returns the tools of the server; tools that cannot be offered are left out, with a log.

        Raises McpError.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                client = await asyncio.shield(self._client)
                return await self._list(client)
        except TimeoutError:
            raise self._error(f"does not answer within {self._timeout_s:g} s") from None
        except McpError:
            raise
        except STOPS:
            raise
        except Exception as error:
            raise self._error(self._describe(error)) from error

    async def call(self, name: str, arguments: Mapping[str, object]) -> McpResult:
        """Calls a tool. The caller limits the time. Raises McpError."""
        try:
            client = await asyncio.shield(self._client)
            result = await client.call_tool(name, dict(arguments))
        except McpError:
            raise
        except STOPS:
            raise
        except Exception as error:
            raise self._error(self._describe(error)) from error
        text = "\n".join(_write(content) for content in result.content)
        if not text and result.structured_content is not None:
            text = json.dumps(result.structured_content, ensure_ascii=False)
        return McpResult(text, bool(result.is_error))

    async def close(self) -> None:
        """Ends the session; a server with a command ends with it."""
        self._closing.set()
        if not self._client.done():
            self._task.cancel()
        _, still_open = await asyncio.wait({self._task}, timeout=_CLOSING_S)
        for task in still_open:
            task.cancel()
            await asyncio.wait({task})
        if self._client.done() and not self._client.cancelled():
            self._client.exception()  # it was reported where it was awaited

    async def _keep(self) -> None:
        """Opens the session, and keeps it open until `close`."""
        try:
            async with self._connect() as client:
                self._client.set_result(client)
                await self._closing.wait()
        except STOPS:
            self._client.cancel()
            raise
        except BaseException as error:
            # Broad: the library raises groups of exceptions, and nobody awaits this task.
            if self._client.done():
                logger.info("the MCP server %s: %s", self._server.label, self._describe(error))
            else:
                self._client.set_exception(self._error(self._describe(error)))

    @asynccontextmanager
    async def _connect(self) -> "AsyncIterator[Client]":
        try:
            from mcp import Client  # noqa: PLC0415
        except ImportError as error:
            raise self._error(f"needs the extra mcp: {install_hint('mcp')}") from error
        async with AsyncExitStack() as stack:
            transport = await self._open_transport(stack)
            # No answers of earlier sessions are used: the keys of clients differ.
            yield await stack.enter_async_context(Client(transport, cache=None))

    async def _open_transport(self, stack: AsyncExitStack) -> "Transport":
        server = self._server
        if isinstance(server, LocalServer):
            from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: PLC0415

            if self._programs is not None:
                await stack.enter_async_context(self._programs)
            log = stack.enter_context(open_log_pipe(server.label))
            parameters = StdioServerParameters(
                command=server.command,
                args=list(server.args),
                env=dict(server.env),
                cwd=server.cwd,
            )
            return stdio_client(parameters, errlog=log)
        return await self._open_remote(server, stack)

    async def _open_remote(self, server: RemoteServer, stack: AsyncExitStack) -> "Transport":
        import httpx2  # noqa: PLC0415
        from mcp.client.sse import sse_client  # noqa: PLC0415
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

        from ouzel.outbound.http_transport import CheckedTransport  # noqa: PLC0415

        async def note_status(response: httpx2.Response) -> None:
            if response.is_error:
                self._refused_status = response.status_code

        def make_client(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(
                headers=dict(server.headers) | (headers or {}),
                # The caller limits the time of a call; a stream may be silent meanwhile.
                timeout=httpx2.Timeout(self._timeout_s, read=None),
                auth=auth,
                trust_env=False,
                event_hooks={"response": [note_status]},
                transport=CheckedTransport(
                    self._allowed,
                    connect_timeout_s=self._timeout_s,
                    max_answer_bytes=self._max_answer_bytes,
                ),
            )

        if httpx2.URL(server.url).path.rstrip("/").endswith("/sse"):
            return sse_client(server.url, httpx_client_factory=make_client)
        client = await stack.enter_async_context(make_client())
        return streamable_http_client(
            server.url, http_client=client, max_sse_event_size=self._max_answer_bytes
        )

    async def _list(self, client: "Client") -> list[McpTool]:
        found: dict[str, McpTool] = {}
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            for each in page.tools:
                tool = _read_tool(each)
                if tool is None or tool.name in found:
                    logger.info("left out a tool of the MCP server %s", self._server.label)
                elif len(found) == _MAX_TOOLS:
                    raise self._error(f"has more than {_MAX_TOOLS} tools (see allowed_tools)")
                else:
                    found[tool.name] = tool
            cursor = page.next_cursor
            if cursor is None:
                return list(found.values())
        raise self._error(f"lists its tools on more than {_MAX_PAGES} pages")

    def _describe(self, error: BaseException) -> str:
        """Describes the innermost cause of an error in one line, which may be shown to a client."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, McpError):
            return str(error).partition("' ")[2]
        if self._refused_status is not None:
            return f"answered with the status {self._refused_status}"
        text = " ".join(str(error).split())[:_MAX_REASON]
        return f"failed: {text or type(error).__name__}"

    def _error(self, complaint: str) -> McpError:
        return McpError(f"the MCP server {self._server.label!r} {complaint}")


def _read_tool(tool: Any) -> McpTool | None:
    """Reads a tool of the library; None if its name or its schema is too long to be offered."""
    schema = dict(tool.input_schema or {})
    if not 0 < len(tool.name) <= _MAX_NAME or len(json.dumps(schema)) > _MAX_SCHEMA:
        return None
    if schema.get("type") != "object":  # the arguments of a call are always an object
        schema["type"] = "object"
    annotations = tool.annotations
    return McpTool(
        tool.name,
        None if tool.description is None else tool.description[:_MAX_DESCRIPTION],
        schema,
        None if annotations is None else annotations.model_dump(by_alias=True, exclude_none=True),
    )


def _write(content: Any) -> str:
    """Writes one content of a result as text for the model."""
    match content.type:
        case "text":
            return str(content.text)
        case "resource" if hasattr(content.resource, "text"):
            return str(content.resource.text)
        case "resource":
            return f"[a file: {content.resource.uri}, {content.resource.mime_type}]"
        case "resource_link":
            return f"[a link to {content.name}: {content.uri}]"
        case kind:
            return f"[{kind}, {content.mime_type}: the model reads text only]"
