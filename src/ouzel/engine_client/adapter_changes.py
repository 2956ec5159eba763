"""Adapters are loaded and unloaded in an engine that runs; one that is started again is told again.

Rules
1. A change is over when the engine answers it. When the engine dies first, the change has failed.
2. An engine that starts has the adapters of its specification; what was changed since is sent to it when it is ready,
   and it takes no requests before it has answered.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import assert_never

from ouzel.errors import EngineUnavailable, ModelLoadError
from ouzel.types import (
    AdapterEvent,
    AdapterFailed,
    AdapterLoaded,
    AdapterUnloaded,
    EngineCommand,
    LoadAdapter,
    UnloadAdapter,
)

logger = logging.getLogger(__name__)


class AdapterChanges:
    def __init__(self, send: Callable[[EngineCommand], None], *, is_running: Callable[[], bool]) -> None:
        self._send = send
        self._is_running = is_running
        self._paths: dict[str, str] = {}  # of those that were loaded since the start
        self._unloaded: set[str] = set()  # names that the specification may have
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._telling: set[str] = set()  # what an engine that was started again has yet to answer

    @property
    def is_telling(self) -> bool:
        return bool(self._telling)

    async def load(self, name: str, path: str) -> None:
        """Raises ModelLoadError for what cannot be loaded, EngineUnavailable where there is no engine, or it dies."""
        if not self._is_running():
            raise EngineUnavailable("the engine is not running", retry_after_s=2.0)
        await self._changed(name, LoadAdapter(name, path))
        self._paths[name] = path
        self._unloaded.discard(name)

    async def unload(self, name: str) -> None:
        """Returns when its memory is free, which requests that use it put off."""
        self._paths.pop(name, None)
        self._unloaded.add(name)
        if self._is_running():
            with suppress(EngineUnavailable):  # it has died, and its memory is free
                await self._changed(name, UnloadAdapter(name))

    async def _changed(self, name: str, command: EngineCommand) -> None:
        while (before := self._waiting.get(name)) is not None:  # one change of a name at a time
            await asyncio.wait([before])
        change = self._waiting[name] = asyncio.get_running_loop().create_future()
        self._send(command)
        try:
            await asyncio.shield(change)  # whoever waits may leave; the engine answers all the same
        finally:
            if change.done() and self._waiting.get(name) is change:
                del self._waiting[name]

    def answer(self, event: AdapterEvent) -> None:
        self._telling.discard(event.name)
        change = self._waiting.pop(event.name, None)
        if change is None or change.done():  # nobody waits: it was sent to an engine that had started again
            if isinstance(event, AdapterFailed):
                logger.error("adapter %s is not there after the restart: %s", event.name, event.message)
            return
        match event:
            case AdapterLoaded() | AdapterUnloaded():
                change.set_result(None)
            case AdapterFailed(message=message):
                change.set_exception(ModelLoadError(message))
            case _:
                assert_never(event)

    def lose(self, reason: str) -> None:
        """Ends the changes that an engine cannot answer any more."""
        for change in self._waiting.values():
            if not change.done():
                change.set_exception(EngineUnavailable(reason, retry_after_s=2.0))
                change.exception()  # somebody need not be there to hear it
        self._waiting.clear()
        self._telling.clear()

    def tell_again(self, present: Iterable[str]) -> None:
        """Sends what was changed to an engine that has started, and has these."""
        unwanted = self._unloaded.intersection(present)
        self._telling = {*unwanted, *self._paths}
        for name in unwanted:
            self._send(UnloadAdapter(name))
        for name, path in self._paths.items():
            self._send(LoadAdapter(name, path))


class PoolAdapters:
    """Every engine of a pool has the same."""

    def __init__(self, members: Sequence[AdapterChanges]) -> None:
        self._members = members

    async def load(self, name: str, path: str) -> None:
        """Loads it into every engine, or none. Raises ModelLoadError and EngineUnavailable."""
        loads = (member.load(name, path) for member in self._members)
        results = await asyncio.gather(*loads, return_exceptions=True)
        faults = [result for result in results if isinstance(result, BaseException)]
        if faults:
            loaded = [member for member, result in zip(self._members, results, strict=True) if result is None]
            await asyncio.gather(*(member.unload(name) for member in loaded))
            raise faults[0]

    async def unload(self, name: str) -> None:
        """Returns when no engine has it any more."""
        await asyncio.gather(*(member.unload(name) for member in self._members))
