"""Holds the unfinished requests of one engine and their unread outputs."""

import asyncio
from collections.abc import Iterable

from ouzel.engine_client.collector import Collector
from ouzel.errors import EngineFailed
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import StepOutput


class OpenRequests:
    """The collectors of unfinished requests, by request id."""

    def __init__(self) -> None:
        self._collectors: dict[str, Collector] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    async def empty(self) -> None:
        """Waits until there are no requests."""
        await self._is_empty.wait()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._collectors

    def ids(self) -> tuple[str, ...]:
        return tuple(self._collectors)

    def open(
        self, request: EngineRequest, info: EngineInfo, accepted: asyncio.Event | None = None
    ) -> Collector:
        """Opens a request for the engine of `info`. Raises EngineFailed if its id is in use.

        Sets `accepted` when the engine can no longer refuse the request: at once, or at its first
        output.
        """
        if request.request_id in self._collectors:
            raise EngineFailed(f"request_id {request.request_id!r} is in use")
        collector = self._collectors[request.request_id] = Collector(request, accepted)
        if accepted is not None and request.grammar is None and not info.confirms_requests:
            accepted.set()
        self._is_empty.clear()
        return collector

    def leave(self, request_id: str, collector: Collector) -> bool:
        """Removes a request whose reader has left; returns whether it was unfinished."""
        is_open = self._collectors.get(request_id) is collector
        if is_open:
            self._forget(request_id)
        return is_open

    def distribute(self, outputs: Iterable[StepOutput]) -> None:
        for output in outputs:
            # There is no collector if the reader has left.
            if (collector := self._collectors.get(output.request_id)) is not None:
                collector.put(output)
                if collector.is_complete:
                    self._forget(output.request_id)

    def lose(self, request_id: str, reason: str) -> None:
        """Makes the final outputs of the request's open choices in place of the engine."""
        self._collectors[request_id].lose(reason)
        self._forget(request_id)

    def lose_all(self, reason: str) -> None:
        for request_id in self.ids():
            self.lose(request_id, reason)

    def _forget(self, request_id: str) -> None:
        del self._collectors[request_id]
        if not self._collectors:
            self._is_empty.set()
