"""Limits the number of requests that run or wait: each holds a place until its end.

Requests in the background have as many places of their own.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from ouzel.engine_client.background import in_background
from ouzel.engine_client.engine_state import EngineState
from ouzel.errors import EngineUnavailable, Overloaded


class Admitting(Protocol):
    """The state and the limit of one engine or of a pool."""

    @property
    def state(self) -> EngineState: ...

    @property
    def reason(self) -> str: ...

    @property
    def max_admitted(self) -> int: ...


class Admission:
    """Counts the places that requests hold."""

    def __init__(self, engines: Admitting) -> None:
        self._engines = engines
        self.num_admitted = 0  # places that are not in the background
        self.num_in_background = 0
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    async def empty(self) -> None:
        """Waits until no request holds a place."""
        await self._is_empty.wait()

    @property
    def num_free(self) -> int:
        """Counts the free places for requests like the present one."""
        engines = self._engines
        num_used = self.num_in_background if in_background.get() else self.num_admitted
        return engines.max_admitted - num_used if engines.state is EngineState.READY else 0

    @contextmanager
    def places(self, num_requests: int) -> Iterator[None]:
        """Holds `num_requests` places in a block. Raises Overloaded or EngineUnavailable."""
        engines = self._engines
        if engines.state not in (EngineState.READY, EngineState.LEAVING):
            raise EngineUnavailable(engines.reason, retry_after_s=2.0)
        is_background = in_background.get()
        num_used = self.num_in_background if is_background else self.num_admitted
        if num_used + num_requests > engines.max_admitted:
            raise Overloaded(
                f"the server is full: {num_used} requests run or wait, the limit is "
                f"{engines.max_admitted}, given {num_requests} more",
                retry_after_s=1.0,
            )
        self._count(num_requests, is_background=is_background)
        self._is_empty.clear()
        try:
            yield
        finally:
            self._count(-num_requests, is_background=is_background)
            if not (self.num_admitted or self.num_in_background):
                self._is_empty.set()

    def _count(self, num_requests: int, *, is_background: bool) -> None:
        if is_background:
            self.num_in_background += num_requests
        else:
            self.num_admitted += num_requests
