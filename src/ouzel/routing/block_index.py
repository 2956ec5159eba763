"""The index mirrors what the replicas' caches have, as far as it follows from what they were given.

Rules
1. A replica is a bit, and a block's holders are a number: what all replicas have of a prompt is found in one pass.
2. Each replica's blocks are in the order of use, and the one that was used longest ago goes first; of one prompt the
   end goes before the beginning. Engines evict alike, so that with the size of a cache the mirror is close.
3. All replicas together have `max_blocks` at most, each an equal share.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import takewhile

from ouzel.routing.keys import RequestKeys, length_of


class _Mirror:
    def __init__(self, bit: int) -> None:
        self.bit = bit
        self.blocks: OrderedDict[bytes, int] = (
            OrderedDict()
        )  # used longest ago first; tokens of each
        self.num_tokens = 0


class BlockIndex:
    def __init__(self, max_blocks: int, cache_tokens: int | None = None) -> None:
        """A replica caches so many tokens; without a number it seems to keep all that there is memory for here."""
        self._max_blocks = max_blocks
        self._cache_tokens = cache_tokens
        self._mirrors: dict[str, _Mirror] = {}
        self._names: dict[int, str] = {}  # by bit
        self._holders: dict[bytes, int] = {}  # by block: bits

    def __len__(self) -> int:
        """Counts blocks as often as there are replicas that have them."""
        return sum(len(mirror.blocks) for mirror in self._mirrors.values())

    def num_held(self, blocks: Sequence[bytes]) -> dict[str, int]:
        """Returns how many of the blocks, from the first on, each replica has that has any."""
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
        """Notes that a replica has the blocks of a prompt."""
        mirror = self._mirror(replica)
        for number in range(len(keys.blocks) - 1, -1, -1):
            block = keys.blocks[number]
            if block in mirror.blocks:
                mirror.blocks.move_to_end(block)
            else:
                mirror.blocks[block] = length = length_of(number, keys.unit)
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
                self._evict(other)  # its share is smaller now
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
        """Gives the replicas that have these bits."""
        while bits:
            bit = bits & -bits
            yield self._names[bit]
            bits ^= bit
