"""Limits the programs of MCP servers that run at the same time, and keeps idle ones for later.

    response ─take─> session ─give_back─> idle ─take─> the next response of the same API key
                                            └─> closed after `idle_s`, or when its place is needed

1.  A program belongs to one response at a time, and to one API key for its whole life: the state of
    a program must not leak from client to client.
2.  An idle program has a place until it has ended. A program that waits for a place ends the oldest
    idle one.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ouzel.hosted_tools.mcp.session import McpSession

_Owner = tuple[str, str | None]  # the label of a server and the id of an API key


@dataclass(frozen=True, slots=True, eq=False)
class _Idle:
    owner: _Owner
    session: "McpSession"
    timer: asyncio.TimerHandle


class ProgramSlots:
    """The places of running programs; entering the context takes one. It has one event loop."""

    def __init__(
        self, max_programs: int, *, idle_s: float, close: "Callable[[McpSession], None]"
    ) -> None:
        """An idle program ends after `idle_s`; 0 keeps none.

        `close` closes a session in a task of its own.
        """
        self._places = asyncio.Semaphore(max_programs)
        self._idle_s = idle_s
        self._close = close
        self._idle: list[_Idle] = []  # the oldest first
        self._num_waiting = 0
        self._is_closed = False

    async def __aenter__(self) -> None:
        self._num_waiting += 1
        try:
            if self._places.locked() and self._idle:
                self._end(self._idle[0])
            await self._places.acquire()
        finally:
            self._num_waiting -= 1

    async def __aexit__(self, *raised: object) -> None:
        self._places.release()

    def take(self, label: str, key_id: str | None) -> "McpSession | None":
        """Returns the newest idle session of a server for a key, or None."""
        for idle in reversed(self._idle):
            if idle.owner != (label, key_id):
                continue
            if not idle.session.is_reusable:
                self._end(idle)
                return self.take(label, key_id)
            self._remove(idle)
            return idle.session
        return None

    def give_back(self, label: str, key_id: str | None, session: "McpSession") -> None:
        """Keeps the session of a response that has ended, or closes it."""
        keeps = self._idle_s > 0 and not self._is_closed and self._num_waiting == 0
        if not keeps or not session.is_reusable:
            self._close(session)
            return
        timer = asyncio.get_running_loop().call_later(self._idle_s, self._end_session, session)
        self._idle.append(_Idle((label, key_id), session, timer))

    def close(self) -> None:
        """Ends all idle programs; programs that come back later end too."""
        self._is_closed = True
        for idle in tuple(self._idle):
            self._end(idle)

    def _end_session(self, session: "McpSession") -> None:
        for idle in tuple(self._idle):
            if idle.session is session:
                self._end(idle)

    def _end(self, idle: _Idle) -> None:
        self._remove(idle)
        self._close(idle.session)

    def _remove(self, idle: _Idle) -> None:
        idle.timer.cancel()
        self._idle.remove(idle)
