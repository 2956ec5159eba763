"""Compiled grammars are kept, as many as a bound of memory allows.

What one takes is what its trial said, and then some for each token of its sessions: the states of its lexer are made as
they are met, and never given back. So one that has been used for long is compiled anew for the next request.
"""

from collections import OrderedDict
from weakref import WeakSet

from ouzel.engine.grammars.compilation import Compilation
from ouzel.engine.grammars.session import Prototype

MAX_KEPT = 64
MAX_KEPT_BYTES = 256 * 2**20
MAX_LIVE_BYTES = 2**30  # compiled, with those that requests still use
SMALL_BYTES = 2**20  # most grammars are
MAX_LIVE_BYTES_WITH_SMALL = (
    MAX_LIVE_BYTES + 2**28
)  # so that a few dozen large ones leave others theirs

_BYTES_PER_TOKEN = (
    16 * 2**10
)  # hostile grammars take up to 100 KiB for some of their first tokens, ordinary ones 20 B
_MAX_GROWTH_BYTES = 48 * 2**20  # as many states as a lexer may have


class Prototypes:
    """The least recently used go first. Its owner holds a lock."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Compilation] = OrderedDict()
        self._live: WeakSet[Prototype] = WeakSet()

    def get(self, grammar: str) -> Compilation | None:
        """Returns what is kept of a grammar, compiled or not yet, unless it is over without a result or worn."""
        compilation = self._kept.get(grammar)
        if compilation is None:
            return None
        prototype = _prototype_of(compilation)
        if compilation.is_late or (
            prototype is not None and growth_bytes(prototype) >= _MAX_GROWTH_BYTES
        ):
            del self._kept[grammar]
            return None
        self._kept.move_to_end(grammar)
        self._shrink(0)  # they grow as they are used
        return compilation

    def put(self, compilation: Compilation) -> None:
        self._kept[compilation.grammar] = compilation

    def forget(self, grammar: str) -> None:
        self._kept.pop(grammar, None)

    def has_room(self, num_bytes: int) -> bool:
        """Makes room for one more, and tells whether requests that go on leave enough."""
        self._shrink(num_bytes)
        limit = MAX_LIVE_BYTES_WITH_SMALL if num_bytes <= SMALL_BYTES else MAX_LIVE_BYTES
        return num_bytes + sum(each.num_bytes for each in self._live) <= limit

    def add(self, prototype: Prototype) -> None:
        self._live.add(prototype)

    def _shrink(self, num_bytes: int) -> None:
        """Forgets until there is room for so many bytes; what is being compiled is not forgotten."""
        total = num_bytes
        for number, compilation in enumerate(reversed([*self._kept.values()]), start=1):
            prototype = _prototype_of(compilation)
            total += len(compilation.grammar)
            total += 0 if prototype is None else prototype.num_bytes + growth_bytes(prototype)
            if compilation.future.done() and (total > MAX_KEPT_BYTES or number > MAX_KEPT):
                del self._kept[compilation.grammar]


def growth_bytes(prototype: Prototype) -> int:
    return min(prototype.num_tokens * _BYTES_PER_TOKEN, _MAX_GROWTH_BYTES)


def _prototype_of(compilation: Compilation) -> Prototype | None:
    result = compilation.future.result() if compilation.future.done() else None
    return result if isinstance(result, Prototype) else None
