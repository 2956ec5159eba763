"""Provides a mover without engines, and a clock that moves only when nothing else can happen."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ouzel.errors import OuzelError

Result = TypeVar("Result")


class VirtualClock(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer instead of passing."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None) -> Any:
            if timeout:
                self._now_s += timeout
            return select(0)

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._now_s


def run_in_virtual_time(make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    with asyncio.Runner(loop_factory=VirtualClock) as runner:
        return runner.run(make())


class FakeMover:
    """Records the moves. `sizes` has the bytes of each model, `load_s` the time of each load."""

    def __init__(self, sizes: dict[str, int], *, load_s: float = 1.0) -> None:
        self.sizes = sizes
        self.load_s = load_s
        self.moves: list[str] = []
        self.in_memory: set[str] = set()
        self.failures: dict[str, OuzelError] = {}
        self.unfinished: dict[str, asyncio.Event] = {}
        self.broken: set[str] = set()
        self.most_bytes = 0

    async def measure(self, name: str) -> int:
        if name in self.failures:
            raise self.failures[name]
        return self.sizes[name]

    async def load(self, name: str) -> None:
        await asyncio.sleep(self.load_s)
        if name in self.failures:
            raise self.failures[name]
        self.moves.append(f"+{name}")
        self.in_memory.add(name)
        self.most_bytes = max(self.most_bytes, sum(self.sizes[each] for each in self.in_memory))

    async def unload(self, name: str) -> None:
        await asyncio.sleep(0)
        self.moves.append(f"-{name}")
        self.in_memory.remove(name)
        self.broken.discard(name)

    def num_unfinished(self, name: str) -> int:
        return int(name in self.unfinished)

    async def wait_until_unused(self, name: str) -> None:
        await self.unfinished[name].wait()

    def is_broken(self, name: str) -> bool:
        return name in self.broken
