"""All connections of a server: how many there may be, which of them wait for their client, and for how long.

    LEAVING  for its client to hang up, which has been told all
    HEAD     for a request's head to be whole, from the first byte (of a new connection: from the start)
    IDLE     for the next request
    BODY     for a request's body, which the door puts a limit to
    ANSWER   for its client to read the rest of its last answer, which `write_watch.py` puts a limit to

Whoever waits longest in a state comes first, so closing the late ones costs nothing for the others. When too many are
open, one that waits is closed for each new one: that which has waited longest, measured by what is usual in its state;
those whose request is being answered never are. So a flood of one kind displaces itself.
"""

import asyncio
import math
from collections import OrderedDict
from enum import Enum
from typing import Protocol

MAX_CONNECTIONS = 2**14  # where nothing else is said
NUM_SPARE = 32  # connections beyond the limit, which are told so
_LEAST_PAUSE_S = 0.05  # between two looks at those that are late
_MOST_AT_ONCE = 250  # late ones, each of which may be sent an answer; then others have their turn


class Wait(Enum):
    LEAVING = "leaving"
    HEAD = "head"
    IDLE = "idle"
    BODY = "body"
    ANSWER = "answer"


_USUAL_S = {Wait.LEAVING: 0.1, Wait.HEAD: 1.0, Wait.BODY: 3.0, Wait.IDLE: 30.0, Wait.ANSWER: 60.0}


class Waiting(Protocol):
    """A connection as it is seen here."""

    def wait_is_over(self) -> None:
        """The client has had its time."""

    def close_for_newcomer(self) -> None:
        """Closes at once, for another connection."""


class Connections:
    def __init__(
        self, max_connections: int, *, header_timeout_s: float, idle_timeout_s: float
    ) -> None:
        self.max_connections = max_connections
        self.open: set[object] = set()  # uvicorn adds and removes
        self._timeouts_s = {Wait.HEAD: header_timeout_s, Wait.IDLE: idle_timeout_s}
        # In plain dictionaries, finding the first passes over all that were before it.
        self._since_s: dict[Wait, OrderedDict[Waiting, float]] = {
            wait: OrderedDict() for wait in Wait
        }
        self._timer: asyncio.TimerHandle | None = None
        self._next_look_s = math.inf

    @property
    def is_busy(self) -> bool:
        """Tells whether as many connections as may be have a request that is being answered."""
        num_waiting = sum(map(len, self._since_s.values()))
        return len(self.open) - num_waiting >= self.max_connections

    def move(self, connection: Waiting, before: Wait | None, after: Wait | None) -> None:
        """Notes that the connection waits for something else; None is for nothing of its client's."""
        if before is not None:
            self._since_s[before].pop(connection, None)
        if after is not None:
            loop = asyncio.get_running_loop()
            since_s = loop.time()
            self._since_s[after][connection] = since_s
            deadline_s = since_s + self._timeouts_s.get(after, math.inf)
            if deadline_s < self._next_look_s:
                self._look_at(deadline_s, loop)

    @property
    def has_room(self) -> bool:
        """Tells whether one more may be accepted."""
        return len(self.open) < self.max_connections + NUM_SPARE

    def make_room(self) -> bool:
        """Closes a connection that waits, and tells whether there was one."""
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
        self.open.discard(connection)  # uvicorn does so a moment later
        return True

    def _look_at(self, time_s: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next_look_s = time_s
        self._timer = loop.call_at(time_s, self._end_late_ones, loop)

    def _end_late_ones(self, loop: asyncio.AbstractEventLoop) -> None:
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
                connection.wait_is_over()
        if next_look_s < self._next_look_s:
            self._look_at(max(next_look_s, now_s + _LEAST_PAUSE_S), loop)
