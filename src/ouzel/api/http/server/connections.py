"""Limits the connections of a server, and the time that each may wait for its client.

A connection waits in one of these states, or has a request in progress:

    LEAVING  for the client to hang up: it has the whole answer
    HEAD     for a whole request head, from the first byte (of a new connection: from the start)
    IDLE     for the next request
    BODY     for the body of a request, which `BodyReader` limits
    ANSWER   for the client to read the rest of its last answer, which `write_watch.py` limits

Each state lists its connections by waiting time, so closing late connections costs nothing for the
others. If too many connections are open, each new connection closes a waiting one: the connection
that has waited longest, relative to the usual time of its state. Connections with a request in
progress are never closed. So a flood of one kind displaces itself.
"""

import asyncio
import math
from collections import OrderedDict
from enum import Enum
from typing import Protocol

# the limit if the options set none
MAX_CONNECTIONS = 2**14
NUM_SPARE = 32  # connections beyond the limit, which get an error as answer
_LEAST_PAUSE_S = 0.05  # pause between two searches for late connections
# late connections closed in one go, each perhaps with an answer; then other tasks run
_MOST_AT_ONCE = 250


class Wait(Enum):
    LEAVING = "leaving"
    HEAD = "head"
    IDLE = "idle"
    BODY = "body"
    ANSWER = "answer"


_USUAL_S = {Wait.LEAVING: 0.1, Wait.HEAD: 1.0, Wait.BODY: 3.0, Wait.IDLE: 30.0, Wait.ANSWER: 60.0}


class Waiting(Protocol):
    """The part of a connection's interface that this file uses."""

    def end_wait(self) -> None:
        """Closes the connection after its time limit."""

    def close_for_newcomer(self) -> None:
        """Closes at once, to make room for a new connection."""


class Connections:
    def __init__(
        self, max_connections: int, *, header_timeout_s: float, idle_timeout_s: float
    ) -> None:
        self.max_connections = max_connections
        self.open: set[object] = set()  # uvicorn adds and removes connections
        self._timeouts_s = {Wait.HEAD: header_timeout_s, Wait.IDLE: idle_timeout_s}
        # Finding the first entry of a plain dict passes over all deleted entries before it.
        self._since_s: dict[Wait, OrderedDict[Waiting, float]] = {
            wait: OrderedDict() for wait in Wait
        }
        self._timer: asyncio.TimerHandle | None = None
        self._next_look_s = math.inf

    @property
    def is_busy(self) -> bool:
        """Tells whether requests in progress occupy all connections that are allowed."""
        num_waiting = sum(map(len, self._since_s.values()))
        return len(self.open) - num_waiting >= self.max_connections

    def move(self, connection: Waiting, before: Wait | None, after: Wait | None) -> None:
        """Records that a connection waits in another state; None is a request in progress."""
        if before is not None:
            self._since_s[before].pop(connection, None)
        if after is not None:
            loop = asyncio.get_running_loop()
            since_s = loop.time()
            self._since_s[after][connection] = since_s
            deadline_s = since_s + self._timeouts_s.get(after, math.inf)
            if deadline_s < self._next_look_s:
                self._schedule_search(deadline_s, loop)

    @property
    def has_room(self) -> bool:
        """Tells whether one more connection may be accepted."""
        return len(self.open) < self.max_connections + NUM_SPARE

    def make_room(self) -> bool:
        """Closes a waiting connection, and says whether there was one."""
        now_s = asyncio.get_running_loop().time()
        first = [
            (_USUAL_S[wait], *next(iter(waiting.items())))
            for wait, waiting in self._since_s.items()
            if waiting
        ]
        if not first:
            return False
        _, connection, _ = max(first, key=lambda each: (now_s - each[2]) / each[0])
        connection.close_for_newcomer()
        self.open.discard(connection)  # uvicorn discards it a moment later
        return True

    def _schedule_search(self, time_s: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next_look_s = time_s
        self._timer = loop.call_at(time_s, self._end_late, loop)

    def _end_late(self, loop: asyncio.AbstractEventLoop) -> None:
        now_s = loop.time()
        self._timer, self._next_look_s = None, math.inf
        next_look_s = math.inf
        for wait, timeout_s in self._timeouts_s.items():
            waiting = self._since_s[wait]
            late: list[Waiting] = []
            for connection, since_s in waiting.items():
                if since_s + timeout_s > now_s or len(late) == _MOST_AT_ONCE:
                    next_look_s = min(next_look_s, since_s + timeout_s)
                    break
                late.append(connection)
            for connection in late:
                waiting.pop(connection, None)
                connection.end_wait()
        if next_look_s < self._next_look_s:
            self._schedule_search(max(next_look_s, now_s + _LEAST_PAUSE_S), loop)
