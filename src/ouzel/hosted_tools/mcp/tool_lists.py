"""Keeps the lists of tools of MCP servers for later responses.

1.  The list of a server that the operator has configured serves all clients. The list of a URL that
    a client names serves the same API key only, with the same headers, and for a minute at most:
    the tools may depend on both.
2.  The headers are secret, so the lists are found by a keyed hash. The key of the hash is random
    and stays in memory.
3.  A list is dropped when the server says that its tools have changed, and when a call fails: the
    tool may be gone, or may want other arguments. A list that is on its way then is not kept.
"""

import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from ouzel.hosted_tools.mcp.records import LocalServer, McpServer, McpTool

_MAX_CLIENTS_AGE_S = 60.0
_MAX_CLIENTS_LISTS = 256
_MAX_CLIENTS_CHARS = 8_000_000  # characters of all lists of clients' servers together


@dataclass(frozen=True, slots=True)
class _StoredList:
    tools: Sequence[McpTool]
    num_chars: int
    end_s: float  # the list is not used from then on


@dataclass(slots=True, eq=False)
class _Listing:
    """A list that a server is being asked for."""

    key: bytes
    is_stale: bool = field(default=False)


class ToolLists:
    """The stored lists. All methods run in one event loop."""

    def __init__(self, *, max_age_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`max_age_s` limits the age of a list; 0 keeps none."""
        self._max_age_s = max_age_s
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._operators: dict[bytes, _StoredList] = {}  # one for each configured server at most
        self._clients: dict[bytes, _StoredList] = {}  # the oldest first
        self._num_clients_chars = 0
        self._listings: set[_Listing] = set()

    async def find_or_list(
        self,
        server: McpServer,
        key_id: str | None,
        list_tools: Callable[[], Awaitable[Sequence[McpTool]]],
    ) -> Sequence[McpTool]:
        """Returns the stored list of a server, or asks the server with `list_tools`.

        `key_id` is the API key of the client. Raises the errors of `list_tools`.
        """
        key = self._make_key(server, key_id)
        lists = self._operators if server.is_operators else self._clients
        stored = lists.get(key)
        if stored is not None and self._clock() < stored.end_s:
            return stored.tools
        self._remove(key)
        listing = _Listing(key)
        self._listings.add(listing)
        try:
            tools = await list_tools()
        finally:
            self._listings.discard(listing)
        if not listing.is_stale:
            self._add(key, tools, is_operators=server.is_operators)
        return tools

    def drop(self, server: McpServer, key_id: str | None) -> None:
        """Drops the list of a server; the next response lists the tools anew."""
        key = self._make_key(server, key_id)
        self._remove(key)
        for listing in self._listings:
            listing.is_stale |= listing.key == key

    def _add(self, key: bytes, tools: Sequence[McpTool], *, is_operators: bool) -> None:
        age_s = self._max_age_s if is_operators else min(self._max_age_s, _MAX_CLIENTS_AGE_S)
        if age_s <= 0:
            return
        self._remove(key)  # another response may have listed them at the same time
        num_chars = sum(tool.num_chars for tool in tools)
        stored = _StoredList(tools, num_chars, self._clock() + age_s)
        if is_operators:
            self._operators[key] = stored
            return
        self._clients[key] = stored
        self._num_clients_chars += num_chars
        while (
            len(self._clients) > _MAX_CLIENTS_LISTS or self._num_clients_chars > _MAX_CLIENTS_CHARS
        ):
            self._remove(next(iter(self._clients)))

    def _remove(self, key: bytes) -> None:
        self._operators.pop(key, None)
        if (stored := self._clients.pop(key, None)) is not None:
            self._num_clients_chars -= stored.num_chars

    def _make_key(self, server: McpServer, key_id: str | None) -> bytes:
        identity: object
        if server.is_operators:
            identity = ["operator", server.label]
        else:
            assert not isinstance(server, LocalServer)
            headers = sorted((name.lower(), value) for name, value in server.headers.items())
            identity = ["client", key_id, server.url, headers]
        return hashlib.blake2b(msgspec.json.encode(identity), key=self._secret).digest()
