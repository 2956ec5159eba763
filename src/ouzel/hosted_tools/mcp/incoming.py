"""Passes on the messages of an MCP server that the session needs, and bounds all others.

The library starts a task for each notification and each request of a server, and answers requests.
A hostile server could send them without end. Notifications are dropped; the news that the tools
have changed is told to the owner of the session. The first few requests are passed on: a server may
send pings. Lists of tools are repaired, because the library refuses a list with one wrong tool.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from ouzel.hosted_tools.mcp.contents import repair_tools
from ouzel.hosted_tools.mcp.faults import Faults

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream

Item = SessionMessage | Exception
_CHANGED_TOOLS = "notifications/tools/list_changed"
_MAX_REQUESTS = 100
_MAX_MESSAGES = 50_000  # then the connection ends


class NeededMessages:
    """The received messages, without the messages that the session does not need."""

    def __init__(
        self, stream: "ReadStream[Item]", faults: Faults, on_changed_tools: Callable[[], None]
    ) -> None:
        self._stream = stream
        self._faults = faults
        self._on_changed_tools = on_changed_tools
        self._num_requests = 0
        self._num_messages = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while self._num_messages < _MAX_MESSAGES:
            try:
                item = await self._stream.__anext__()
            except Exception:  # broad: each kind of stream has errors of its own
                self._faults.is_over = True
                raise
            self._num_messages += 1
            await asyncio.sleep(0)  # the next message may be in memory already
            if self._is_needed(item):
                return item
        self._faults.text = f"sent more than {_MAX_MESSAGES} messages"
        raise StopAsyncIteration

    async def receive(self) -> Item:
        return await self.__anext__()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, traceback)

    def _is_needed(self, item: Item) -> bool:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCRequest):
            self._num_requests += 1
            return self._num_requests <= _MAX_REQUESTS
        if isinstance(message, JSONRPCNotification) and message.method == _CHANGED_TOOLS:
            self._on_changed_tools()
        if isinstance(message, JSONRPCResponse):
            repair_tools(message.result)
        return isinstance(message, JSONRPCResponse | JSONRPCError)
