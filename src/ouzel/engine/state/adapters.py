"""Holds the loaded adapters by name, each in a slot of the runner.

Rules
1. A thread reads the files of an adapter into a slot that no batch names; steps continue meanwhile.
2. An unloaded name is unknown at once. Requests that use the adapter already run to their ends;
   only then the slot is cleared and free.
3. The name of an adapter does not identify its weights: caches use its digest.
4. Every load is answered by one AdapterLoaded or AdapterFailed, every unload by one
   AdapterUnloaded.
5. A new adapter is tried between two steps (`adapter_trial`) when there is room. An adapter that
   makes the model overflow is refused, so no request ever uses it.
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

_WAIT_S = 0.005  # wait for a file, while the engine is idle


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """An adapter that requests can name."""

    name: str
    slot: int
    digest: bytes


@dataclass(slots=True, eq=False)
class _Load:
    """An adapter whose slot is being filled."""

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
        """Tries the adapter. Raises ModelLoadError if requests with it would fail."""
        ...


class Adapters:
    """Loads, tries and unloads adapters."""

    def __init__(
        self, runner: AdapterRunner | None, max_loras: int, trial: Trial | None = None
    ) -> None:
        """Without a `runner` no adapter can be loaded."""
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
        fault = self._find_fault(name)
        if fault is not None:
            self._events.append(AdapterFailed(name, fault))
            return
        assert self._runner is not None
        slot = self._free.pop()
        self._loads.append(
            _Load(name, slot, self._threads.submit(self._runner.fill_adapter_slot, slot, path))
        )

    def _find_fault(self, name: str) -> str | None:
        if self._runner is None or not self._max_loras:
            return "this engine loads no adapters: start it with --lora or --max-loras"
        if not name:
            return "an adapter must have a name"
        if name in self._by_name or any(
            load.name == name and not load.is_unwanted for load in self._loads
        ):
            return f"adapter {name!r} is already loaded: unload it first"
        if not self._free:
            leaving = ""
            if self._leaving:
                leaving = f" ({len(self._leaving)} of them unloaded, but still in use)"
            return (
                f"there is no room for another adapter: max_loras is {self._max_loras}, "
                f"and as many are loaded{leaving}"
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
        """Clears adapters that no request uses any more, and accepts adapters that have been
        read.
        """
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
            error = self._try_adapter(adapter)
            if error is None:
                self._by_name[load.name] = adapter
                self._events.append(AdapterLoaded(load.name))
                return
        self._clear(load.slot)
        message = "it was unloaded during its loading" if error is None else str(error)
        if error is not None and not isinstance(error, OuzelError):
            message = f"{type(error).__name__}: {error}"
            logger.error("adapter %s could not be loaded", load.name, exc_info=error)
        self._events.append(AdapterFailed(load.name, message))
        if load.is_unwanted:
            self._events.append(AdapterUnloaded(load.name))

    def _try_adapter(self, adapter: Adapter) -> ModelLoadError | None:
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
