"""The index remembers which replicas have which blocks, as far as they were told to compute them.

Rules
1. A replica is a bit, and a block's holders are a number: what all replicas have of a prompt is found in one pass.
2. The index is bounded: the block that was used longest ago goes first, and of one chain the end before the beginning.
3. Forgetting a replica gives its bit up, at once. Bits that were given up are cleared in all blocks only when there are
   many, for that takes long.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import takewhile

_MAX_STALE_BITS = 64


class BlockIndex:
    def __init__(self, max_blocks: int) -> None:
        self._max_blocks = max_blocks
        self._holders: OrderedDict[bytes, int] = OrderedDict()  # used longest ago first
        self._bits: dict[str, int] = {}
        self._replicas: dict[int, str] = {}  # by bit
        self._live = 0  # all bits in use
        self._num_bits = 0

    def __len__(self) -> int:
        return len(self._holders)

    def num_held(self, blocks: Sequence[bytes]) -> dict[str, int]:
        """Returns how many of the blocks, from the first on, each replica has that has any."""
        held: dict[str, int] = {}
        holding = self._live
        for count, block in enumerate(blocks):
            still = self._holders.get(block, 0) & holding
            if still != holding:
                if count:
                    held |= dict.fromkeys(self._names(holding ^ still), count)
                holding = still
                if not holding:
                    return held
        return held | dict.fromkeys(self._names(holding), len(blocks)) if blocks else held

    def num_held_by(self, replica: str, blocks: Sequence[bytes]) -> int:
        bit = self._bits.get(replica, 0)
        return sum(1 for _ in takewhile(lambda block: self._holders.get(block, 0) & bit, blocks))

    def add(self, blocks: Sequence[bytes], replica: str) -> None:
        """Notes that a replica has the blocks of a prompt."""
        bit = self._bit_of(replica)
        holders = self._holders
        for block in reversed(blocks):
            holders[block] = holders.get(block, 0) | bit
            holders.move_to_end(block)
        while len(holders) > self._max_blocks:
            holders.popitem(last=False)

    def forget(self, replica: str) -> None:
        bit = self._bits.pop(replica, None)
        if bit is None:
            return
        del self._replicas[bit]
        self._live ^= bit
        if self._num_bits - len(self._bits) > _MAX_STALE_BITS:
            self._clear_stale_bits()

    def _bit_of(self, replica: str) -> int:
        bit = self._bits.get(replica)
        if bit is None:
            bit = self._bits[replica] = 1 << self._num_bits
            self._replicas[bit] = replica
            self._num_bits += 1
            self._live |= bit
        return bit

    def _clear_stale_bits(self) -> None:
        """Gives the replicas the lowest bits, and drops blocks that nobody has."""
        new = {old: 1 << number for number, old in enumerate(self._bits.values())}
        moved: dict[int, int] = {}  # holders, of which there are few kinds
        kept: OrderedDict[bytes, int] = OrderedDict()
        for block, holders in self._holders.items():
            live = holders & self._live
            if live not in moved:
                moved[live] = sum(bit for old, bit in new.items() if live & old)
            if moved[live]:
                kept[block] = moved[live]
        self._holders = kept
        self._bits = {replica: new[old] for replica, old in self._bits.items()}
        self._replicas = {bit: replica for replica, bit in self._bits.items()}
        self._num_bits = len(self._bits)
        self._live = (1 << self._num_bits) - 1

    def _names(self, bits: int) -> Iterator[str]:
        """Gives the replicas that have these bits."""
        while bits:
            bit = bits & -bits
            yield self._replicas[bit]
            bits ^= bit
