"""A request has a place from the door to its end, so that those that wait are bounded."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from ouzel.engine_client.engine_state import EngineState
from ouzel.errors import EngineUnavailable, Overloaded


class Admitting(Protocol):
    """One engine or several admit requests by their state, and up to a limit."""

    @property
    def state(self) -> EngineState: ...

    @property
    def reason(self) -> str: ...

    @property
    def max_admitted(self) -> int: ...


class Admission:
    def __init__(self, engines: Admitting) -> None:
        self._engines = engines
        self.num_admitted = 0
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    async def empty(self) -> None:
        """Returns when nobody has a place."""
        await self._is_empty.wait()

    @property
    def num_free(self) -> int:
        engines = self._engines
        return engines.max_admitted - self.num_admitted if engines.state is EngineState.READY else 0

    @contextmanager
    def places(self, num_requests: int) -> Iterator[None]:
        """Holds so many while the block runs. Raises Overloaded or EngineUnavailable when there are too few."""
        engines = self._engines
        if engines.state not in (EngineState.READY, EngineState.LEAVING):
            raise EngineUnavailable(engines.reason, retry_after_s=2.0)
        if self.num_admitted + num_requests > engines.max_admitted:
            there_are = (
                f"{self.num_admitted} requests run or wait, the limit is {engines.max_admitted}"
            )
            raise Overloaded(
                f"the server is full for {num_requests} more: {there_are}", retry_after_s=1.0
            )
        self.num_admitted += num_requests
        self._is_empty.clear()
        try:
            yield
        finally:
            self.num_admitted -= num_requests
            if not self.num_admitted:
                self._is_empty.set()
