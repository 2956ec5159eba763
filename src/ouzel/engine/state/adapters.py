"""Adapters are loaded under names, each into a slot of the runner's; requests come with a name.

Rules
1. Files are read by a thread of their own, into a slot that no batch names: steps go on meanwhile.
2. A name that is unloaded is unknown at once. Requests that came with it before go on to their ends, and only then the
   slot is cleared, and free.
3. What an adapter is called says nothing about what it is: what is cached goes by its digest.
4. Every load is answered by one AdapterLoaded or AdapterFailed, every unload by one AdapterUnloaded.
5. An adapter that is read is tried between two steps (`adapter_trial`), where there is room for that: an adapter that
   makes the model overflow is refused, and no request ever uses it.
"""

import logging
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

from ouzel.engine.base import AdapterRunner
from ouzel.errors import ModelLoadError, OuzelError
from ouzel.types.engine_messages import AdapterEvent, AdapterFailed, AdapterLoaded, AdapterUnloaded

logger = logging.getLogger(__name__)

_WAIT_S = 0.005  # while nothing else is to do


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    name: str
    slot: int
    digest: bytes


@dataclass(slots=True, eq=False)
class _Load:
    """A slot is being filled."""

    name: str
    slot: int
    reading: Future[bytes]
    is_unwanted: bool = False  # unloaded before it was loaded


class Trial(Protocol):
    @property
    def has_room(self) -> bool:
        """Tells whether an adapter can be tried now; `settle` asks again after each step."""
        ...

    def run(self, adapter: Adapter) -> None:
        """Raises ModelLoadError for an adapter whose requests would fail."""
        ...


class Adapters:
    def __init__(
        self, runner: AdapterRunner | None, max_loras: int, trial: Trial | None = None
    ) -> None:
        """Without a runner none can be loaded."""
        self._runner = runner
        self._trial = trial
        self._max_loras = max_loras
        self._free = list(range(max_loras - 1, -1, -1))
        self._by_name: dict[str, Adapter] = {}
        self._loads: list[_Load] = []
        self._leaving: list[Adapter] = []  # unloaded, and still in use
        self._events: list[AdapterEvent] = []
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="adapters")

    @property
    def is_busy(self) -> bool:
        return bool(self._loads or self._leaving)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_name))

    def find(self, name: str) -> Adapter | None:
        return self._by_name.get(name)

    def load(self, name: str, path: str) -> None:
        fault = self._fault_of(name)
        if fault is not None:
            self._events.append(AdapterFailed(name, fault))
            return
        assert self._runner is not None
        slot = self._free.pop()
        self._loads.append(
            _Load(name, slot, self._threads.submit(self._runner.fill_adapter_slot, slot, path))
        )

    def _fault_of(self, name: str) -> str | None:
        if self._runner is None or not self._max_loras:
            return "this engine takes no adapters: it was started without --lora and --max-loras"
        if not name:
            return "an adapter must have a name"
        if name in self._by_name or any(
            load.name == name and not load.is_unwanted for load in self._loads
        ):
            return f"adapter {name!r} is loaded already: unload it first"
        if not self._free:
            leaving = (
                f" ({len(self._leaving)} of them unloaded, but still in use)"
                if self._leaving
                else ""
            )
            return (
                f"there is no room: max_loras is {self._max_loras}, and so many are loaded{leaving}"
            )
        return None

    def unload(self, name: str) -> None:
        loading = [load for load in self._loads if load.name == name and not load.is_unwanted]
        adapter = self._by_name.pop(name, None)
        if loading:
            loading[0].is_unwanted = True
        elif adapter is not None:
            self._leaving.append(adapter)
        else:
            self._events.append(AdapterUnloaded(name))

    def settle(self, in_use: Callable[[], Collection[Adapter | None]], *, is_idle: bool) -> None:
        """Clears what nobody uses any more, and takes what is loaded by now."""
        if self._leaving:
            used = in_use()
            for adapter in [adapter for adapter in self._leaving if adapter not in used]:
                self._leaving.remove(adapter)
                self._clear(adapter.slot)
                self._events.append(AdapterUnloaded(adapter.name))
        if is_idle and self._loads:
            wait([self._loads[0].reading], _WAIT_S)
        for load in [load for load in self._loads if load.reading.done()]:
            if self._trial is None or self._trial.has_room:
                self._loads.remove(load)
                self._take(load)

    def _take(self, load: _Load) -> None:
        error = load.reading.exception()
        if error is None and not load.is_unwanted:
            adapter = Adapter(load.name, load.slot, load.reading.result())
            error = self._fault_in_trial(adapter)
            if error is None:
                self._by_name[load.name] = adapter
                self._events.append(AdapterLoaded(load.name))
                return
        self._clear(load.slot)
        message = "it was unloaded while it was loaded" if error is None else str(error)
        if error is not None and not isinstance(error, OuzelError):
            logger.error("adapter %s could not be loaded", load.name, exc_info=error)
        self._events.append(AdapterFailed(load.name, message))
        if load.is_unwanted:
            self._events.append(AdapterUnloaded(load.name))

    def _fault_in_trial(self, adapter: Adapter) -> ModelLoadError | None:
        try:
            if self._trial is not None:
                self._trial.run(adapter)
        except ModelLoadError as error:
            return error
        return None

    def _clear(self, slot: int) -> None:
        assert self._runner is not None
        self._runner.clear_adapter_slot(slot)
        self._free.append(slot)

    def take_events(self) -> list[AdapterEvent]:
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
