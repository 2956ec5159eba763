"""Keeps compiled grammars up to a limit of memory.

The size of a prototype is the size in its trial, plus an amount for each token of its sessions: the
lexer makes states when it needs them and never frees them. So a prototype that was used long enough
is compiled again for the next request.
"""

from collections import OrderedDict
from weakref import WeakSet

from ouzel.engine.grammars.compilation import Compilation
from ouzel.engine.grammars.session import Prototype

MAX_KEPT = 64
MAX_KEPT_BYTES = 256 * 2**20
MAX_LIVE_BYTES = 2**30  # limit of all prototypes, also of prototypes that only requests hold
SMALL_BYTES = 2**20  # limit of a small grammar; most are small
# Small grammars have room beyond the limit, so that a few dozen large ones do not shut them out.
MAX_LIVE_BYTES_WITH_SMALL = MAX_LIVE_BYTES + 2**28

# Hostile grammars take up to 100 KiB for some of their first tokens, ordinary grammars 20 bytes.
_BYTES_PER_TOKEN = 16 * 2**10
_MAX_GROWTH_BYTES = 48 * 2**20  # the size of a lexer with the maximum number of states


class Prototypes:
    """Caches compilations by grammar text (LRU). The caller holds a lock."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Compilation] = OrderedDict()
        self._live: WeakSet[Prototype] = WeakSet()

    def get(self, grammar: str) -> Compilation | None:
        """Returns the compilation of a grammar, finished or not.

        Returns None, and drops the entry, if it ended without a result or its lexer has grown too
        much.
        """
        compilation = self._kept.get(grammar)
        if compilation is None:
            return None
        prototype = _get_prototype(compilation)
        if compilation.is_late or (
            prototype is not None and growth_bytes(prototype) >= _MAX_GROWTH_BYTES
        ):
            del self._kept[grammar]
            return None
        self._kept.move_to_end(grammar)
        self._shrink(0)  # prototypes grow with their use
        return compilation

    def put(self, compilation: Compilation) -> None:
        self._kept[compilation.grammar] = compilation

    def forget(self, grammar: str) -> None:
        self._kept.pop(grammar, None)

    def has_room(self, num_bytes: int) -> bool:
        """Makes room for another prototype; returns whether prototypes in use leave enough room."""
        self._shrink(num_bytes)
        limit = MAX_LIVE_BYTES_WITH_SMALL if num_bytes <= SMALL_BYTES else MAX_LIVE_BYTES
        return num_bytes + sum(each.num_bytes for each in self._live) <= limit

    def add(self, prototype: Prototype) -> None:
        self._live.add(prototype)

    def _shrink(self, num_bytes: int) -> None:
        """Drops prototypes until there is room for `num_bytes`; running compilations stay."""
        total = num_bytes
        for number, compilation in enumerate(reversed([*self._kept.values()]), start=1):
            prototype = _get_prototype(compilation)
            total += len(compilation.grammar)
            total += 0 if prototype is None else prototype.num_bytes + growth_bytes(prototype)
            if compilation.future.done() and (total > MAX_KEPT_BYTES or number > MAX_KEPT):
                del self._kept[compilation.grammar]


def growth_bytes(prototype: Prototype) -> int:
    return min(prototype.num_tokens * _BYTES_PER_TOKEN, _MAX_GROWTH_BYTES)


def _get_prototype(compilation: Compilation) -> Prototype | None:
    result = compilation.future.result() if compilation.future.done() else None
    return result if isinstance(result, Prototype) else None
