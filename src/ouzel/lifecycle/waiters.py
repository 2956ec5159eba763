"""Keeps the requests that wait for models, in the order of their arrival."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ouzel.errors import OuzelError, Overloaded
from ouzel.lifecycle.models import ManagedModel

_RETRY_AFTER_S = 5.0


@dataclass(slots=True, eq=False)
class Waiter:
    model: ManagedModel
    ready: asyncio.Future[None]

    @property
    def was_admitted(self) -> bool:
        return self.ready.done() and not self.ready.cancelled() and self.ready.exception() is None


class Waiters:
    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._waiters: list[Waiter] = []

    def __len__(self) -> int:
        return len(self._waiters)

    @property
    def groups(self) -> list[str]:
        """Returns the group of each request, the longest wait first."""
        return [waiter.model.group_name for waiter in self._waiters]

    def add(self, model: ManagedModel) -> Waiter:
        """Adds a request. Raises Overloaded."""
        if len(self._waiters) >= self._max_waiting:
            raise Overloaded(
                f"{len(self._waiters)} requests wait for models to be loaded, the limit is "
                f"{self._max_waiting}",
                retry_after_s=_RETRY_AFTER_S,
            )
        waiter = Waiter(model, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        return waiter

    def remove(self, waiter: Waiter) -> bool:
        """Removes a request whose client has left; tells whether it was still waiting."""
        if waiter not in self._waiters:
            return False
        self._waiters.remove(waiter)
        return True

    def admit(
        self, is_ready: Callable[[ManagedModel], bool], begin: Callable[[ManagedModel], None]
    ) -> bool:
        """Begins the requests whose model is ready; tells whether there were any."""
        admitted = [waiter for waiter in self._waiters if is_ready(waiter.model)]
        for waiter in admitted:
            self._waiters.remove(waiter)
            if not waiter.ready.done():  # done: its client has left
                begin(waiter.model)
                waiter.ready.set_result(None)
        return bool(admitted)

    def refuse(self, model: ManagedModel, error: OuzelError) -> None:
        """Ends the requests that wait for a model."""
        for waiter in list(self._waiters):
            if waiter.model is model:
                self._waiters.remove(waiter)
                if not waiter.ready.done():
                    waiter.ready.set_exception(error)
