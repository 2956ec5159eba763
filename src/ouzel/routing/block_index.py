"""Mirrors the contents of the replicas' caches, as far as they follow from the routed requests.

Rules
1. A replica is a bit, and the holders of a block are a number: one pass finds the blocks of a
   prompt in all replicas.
2. Each replica's blocks are ordered by their last use; the least recently used is dropped first,
   and the end of a prompt before its beginning. Engines evict in the same way, so a mirror with the
   size of the cache is close to it.
3. All replicas together have at most `max_blocks`, in equal shares.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import takewhile

from ouzel.routing.keys import RequestKeys, find_length


class _Mirror:
    """The blocks of one replica."""

    def __init__(self, bit: int) -> None:
        self.bit = bit
        # block -> tokens; least recently used first
        self.blocks: OrderedDict[bytes, int] = OrderedDict()
        self.num_tokens = 0


class BlockIndex:
    """Finds the replicas that hold the beginning of a prompt."""

    def __init__(self, max_blocks: int, cache_tokens: int | None = None) -> None:
        """`cache_tokens` is the size of a replica's cache; None: limited by `max_blocks` only."""
        self._max_blocks = max_blocks
        self._cache_tokens = cache_tokens
        self._mirrors: dict[str, _Mirror] = {}
        self._names: dict[int, str] = {}  # replica by bit
        self._holders: dict[bytes, int] = {}  # bits of the holders by block

    def __len__(self) -> int:
        """Counts the blocks of all replicas; a block counts once for each holder."""
        return sum(len(mirror.blocks) for mirror in self._mirrors.values())

    def num_held(self, blocks: Sequence[bytes]) -> dict[str, int]:
        """Returns, for each replica with any of them, how many of the first blocks it holds."""
        held: dict[str, int] = {}
        holding = self._holders.get(blocks[0], 0) if blocks else 0
        for count, block in enumerate(blocks):
            still = self._holders.get(block, 0) & holding
            if still != holding:
                held |= dict.fromkeys(self._replicas(holding ^ still), count)
                holding = still
                if not holding:
                    return held
        return held | dict.fromkeys(self._replicas(holding), len(blocks))

    def num_held_by(self, replica: str, blocks: Sequence[bytes]) -> int:
        mirror = self._mirrors.get(replica)
        return (
            0 if mirror is None else sum(1 for _ in takewhile(mirror.blocks.__contains__, blocks))
        )

    def add(self, keys: RequestKeys, replica: str) -> None:
        """Adds the blocks of a prompt to a replica."""
        mirror = self._mirror(replica)
        for number in range(len(keys.blocks) - 1, -1, -1):
            block = keys.blocks[number]
            if block in mirror.blocks:
                mirror.blocks.move_to_end(block)
            else:
                mirror.blocks[block] = length = find_length(number, keys.unit)
                mirror.num_tokens += length
                self._holders[block] = self._holders.get(block, 0) | mirror.bit
        self._evict(mirror)

    def forget(self, replica: str) -> None:
        mirror = self._mirrors.pop(replica, None)
        if mirror is None:
            return
        del self._names[mirror.bit]
        for block in mirror.blocks:
            self._drop(block, mirror.bit)

    def _mirror(self, replica: str) -> _Mirror:
        mirror = self._mirrors.get(replica)
        if mirror is None:
            bit = 1
            while bit in self._names:
                bit <<= 1
            mirror = self._mirrors[replica] = _Mirror(bit)
            self._names[bit] = replica
            for other in self._mirrors.values():
                self._evict(other)  # the shares are smaller now
        return mirror

    def _evict(self, mirror: _Mirror) -> None:
        share = self._max_blocks // len(self._mirrors)
        max_tokens = mirror.num_tokens if self._cache_tokens is None else self._cache_tokens
        while len(mirror.blocks) > share or mirror.num_tokens > max_tokens:
            block, length = mirror.blocks.popitem(last=False)
            mirror.num_tokens -= length
            self._drop(block, mirror.bit)

    def _drop(self, block: bytes, bit: int) -> None:
        holders = self._holders[block] ^ bit
        if holders:
            self._holders[block] = holders
        else:
            del self._holders[block]

    def _replicas(self, bits: int) -> Iterator[str]:
        """Yields the replicas with these bits."""
        while bits:
            bit = bits & -bits
            yield self._names[bit]
            bits ^= bit
