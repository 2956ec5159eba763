"""Answers the requests of a lane of a WebSocket in order, and lanes in parallel.

add ─> the lane's queue ─> its worker, if fewer than MAX_IN_FLIGHT work ─> respond
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

from ouzel.api.http.body_budget import Share
from ouzel.api.responses.socket.messages import Create
from ouzel.api.responses.socket.outbox import Outbox
from ouzel.errors import InvalidRequest, Overloaded

# OpenAI's limits: lanes with a name, requests in progress
MAX_LANES = 32
MAX_IN_FLIGHT = 16
MAX_WAITING = 64
_RETRY_AFTER_S = 1.0

Respond = Callable[[Create, Outbox], Awaitable[None]]
MakeOutbox = Callable[[str | None], AbstractContextManager[Outbox]]


class StreamLimitReached(InvalidRequest):
    """A WebSocket has reached its limit of streams."""

    code = "websocket_stream_limit_reached"


class Lanes:
    """The lanes of one WebSocket.

    `tasks` runs the workers; an exception of `respond` ends all.
    """

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        respond: Respond,
        make_outbox: MakeOutbox,
        *,
        share: Share,
        max_waiting_bytes: int,
    ) -> None:
        """`share` counts the bytes of requests that wait or are in progress."""
        self._tasks = tasks
        self._respond = respond
        self._make_outbox = make_outbox
        self._share = share
        self._max_waiting_bytes = max_waiting_bytes
        self._lanes: dict[str | None, asyncio.Queue[Create]] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._num_waiting = self._num_waiting_bytes = 0
        self._num_open = self._num_open_bytes = 0  # requests that wait or are in progress
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def add(self, create: Create) -> None:
        """Queues a request. Raises StreamLimitReached, or Overloaded if too much waits."""
        self._check_room(create)
        self._share.grow_to(self._num_open_bytes + create.num_bytes)
        lane = self._lanes.get(create.stream_id)
        if lane is None:
            lane = self._open(create.stream_id)
        lane.put_nowait(create)
        self._num_waiting += 1
        self._num_waiting_bytes += create.num_bytes
        self._num_open += 1
        self._num_open_bytes += create.num_bytes
        self._is_idle.clear()

    async def idle(self) -> None:
        """Waits until no request waits or is in progress."""
        await self._is_idle.wait()

    def close(self) -> None:
        """Cancels the requests in progress."""
        for worker in self._workers:
            worker.cancel()

    def _check_room(self, create: Create) -> None:
        named = self._lanes.keys() - {None}
        if (
            create.stream_id is not None
            and create.stream_id not in named
            and len(named) >= MAX_LANES
        ):
            limit = f"stream_id must be one of the {MAX_LANES} of this WebSocket, its limit"
            raise StreamLimitReached(f"{limit}, given {create.stream_id}", param="stream_id")
        if self._num_waiting >= MAX_WAITING:
            limit = f"{MAX_WAITING} requests wait on this WebSocket, the most allowed"
        elif (
            self._num_waiting
            and self._num_waiting_bytes + create.num_bytes > self._max_waiting_bytes
        ):
            limit = (
                "requests that wait on this WebSocket must be "
                f"<= {self._max_waiting_bytes} bytes long together"
            )
        else:
            return
        raise Overloaded(f"{limit}: send more after an answer", retry_after_s=_RETRY_AFTER_S)

    def _open(self, stream_id: str | None) -> asyncio.Queue[Create]:
        lane = self._lanes[stream_id] = asyncio.Queue()
        self._workers.append(self._tasks.create_task(self._work(lane, stream_id)))
        return lane

    async def _work(self, lane: asyncio.Queue[Create], stream_id: str | None) -> None:
        with self._make_outbox(stream_id) as outbox:
            while True:
                create = await lane.get()
                async with self._in_flight:
                    self._num_waiting -= 1
                    self._num_waiting_bytes -= create.num_bytes
                    await self._respond(create, outbox)
                self._num_open -= 1
                self._num_open_bytes -= create.num_bytes
                self._share.shrink_to(self._num_open_bytes)
                if not self._num_open:
                    self._is_idle.set()
