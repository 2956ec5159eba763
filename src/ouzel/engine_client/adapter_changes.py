"""Loads and unloads adapters in a running engine, and again in a restarted one.

Rules
1. A change is over when the engine answers it. If the engine dies first, the change has failed.
2. Answers name the adapter, not the change. So at most one load and one unload of a name are open
   at a time; both may be: an adapter loads while requests of its predecessor run to their ends.
3. A starting engine has the adapters of its specification. Later changes are sent to it when it is
   ready, one after the other, because a name or a place must be free before it is used again. The
   engine takes no requests and no other changes before it has answered.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import assert_never

from ouzel.errors import EngineUnavailable, ModelLoadError
from ouzel.types.engine_messages import (
    AdapterEvent,
    AdapterFailed,
    AdapterLoaded,
    AdapterUnloaded,
    EngineCommand,
    LoadAdapter,
    UnloadAdapter,
)

logger = logging.getLogger(__name__)

AdapterCommand = LoadAdapter | UnloadAdapter


class AdapterChanges:
    """Sends changes of adapters to one engine and waits for its answers."""

    def __init__(
        self, send: Callable[[EngineCommand], None], *, is_running: Callable[[], bool]
    ) -> None:
        self._send = send
        self._is_running = is_running
        self._paths: dict[str, str] = {}  # paths of adapters loaded since the start
        self._unloaded: set[str] = set()  # unloaded names, which the specification may have
        self._waiting: dict[tuple[type[AdapterCommand], str], asyncio.Future[None]] = {}
        # commands to a restarted engine; the first one is under way
        self._telling: deque[AdapterCommand] = deque()
        self._told: asyncio.Future[None] | None = None

    @property
    def is_telling(self) -> bool:
        return bool(self._telling)

    async def load(self, name: str, path: str) -> None:
        """Loads an adapter.

        Raises ModelLoadError if it cannot be loaded, EngineUnavailable if there is no engine or it
        dies.
        """
        await self._changed(LoadAdapter(name, path))
        self._paths[name] = path

    async def unload(self, name: str) -> None:
        """Unloads an adapter.

        Returns when its memory is free, after the last request that uses it.
        """
        self._paths.pop(name, None)
        self._unloaded.add(name)
        if self._told is not None:
            await asyncio.shield(self._told)
        with suppress(EngineUnavailable):  # the engine died, and the memory is free
            await self._changed(UnloadAdapter(name))

    async def _changed(self, command: AdapterCommand) -> None:
        key = type(command), command.name
        while (before := self._waiting.get(key)) is not None:
            await asyncio.wait([before])
        if not self._is_running():
            raise EngineUnavailable("the engine is not running", retry_after_s=2.0)
        change = self._waiting[key] = asyncio.get_running_loop().create_future()
        self._send(command)
        await asyncio.shield(change)  # the caller may leave; the engine answers all the same

    def answer(self, event: AdapterEvent) -> None:
        if self._telling:
            self._telling.popleft()
            if isinstance(event, AdapterFailed):
                logger.error(
                    "adapter %s could not be loaded after the restart: %s",
                    event.name,
                    event.message,
                )
            self._tell_next()
            return
        command = UnloadAdapter if isinstance(event, AdapterUnloaded) else LoadAdapter
        change = self._waiting.pop((command, event.name))
        match event:
            case AdapterLoaded() | AdapterUnloaded():
                change.set_result(None)
            case AdapterFailed(message=message):
                _fail(change, ModelLoadError(message))
            case _:
                assert_never(event)

    def lose(self, reason: str) -> None:
        """Fails the changes of an engine that can no longer answer."""
        for change in self._waiting.values():
            _fail(change, EngineUnavailable(reason, retry_after_s=2.0))
        self._waiting.clear()
        self._telling.clear()
        self._end_telling()

    def tell_again(self, present: Iterable[str]) -> None:
        """Sends all changes to a restarted engine; `present` are the adapters that it has."""
        unwanted = (self._unloaded | self._paths.keys()).intersection(present)
        self._telling.extend(UnloadAdapter(name) for name in sorted(unwanted))
        self._telling.extend(LoadAdapter(name, path) for name, path in self._paths.items())
        self._told = asyncio.get_running_loop().create_future()
        self._tell_next()

    def _tell_next(self) -> None:
        if self._telling:
            self._send(self._telling[0])
        else:
            self._end_telling()

    def _end_telling(self) -> None:
        if self._told is not None:
            self._told.set_result(None)
            self._told = None


def _fail(change: asyncio.Future[None], error: Exception) -> None:
    change.set_exception(error)
    change.exception()  # marks the exception as seen, in case nobody waits


class PoolAdapters:
    """Loads and unloads adapters in every engine of a pool."""

    def __init__(self, members: Sequence[AdapterChanges]) -> None:
        self._members = members

    async def load(self, name: str, path: str) -> None:
        """Loads an adapter into every engine or into none.

        Raises ModelLoadError and EngineUnavailable.
        """
        loads = (member.load(name, path) for member in self._members)
        results = await asyncio.gather(*loads, return_exceptions=True)
        faults = [result for result in results if isinstance(result, BaseException)]
        if faults:
            loaded = [
                member
                for member, result in zip(self._members, results, strict=True)
                if result is None
            ]
            await asyncio.gather(*(member.unload(name) for member in loaded))
            raise faults[0]

    async def unload(self, name: str) -> None:
        """Unloads an adapter; returns when no engine has it any more."""
        await asyncio.gather(*(member.unload(name) for member in self._members))
