"""The KV cache is handed out in blocks; full ones can be shared.

Rules
1. A block is free, referenced (by one or more block tables), or cached: unreferenced but still findable by its key.
2. Only full, computed blocks get a key, and a keyed block is never written again, so sharing needs no copies.
3. A key is a digest chained over the tokens before it and the request's cache salt. On a hit the tokens are compared.
4. Cached blocks are evicted least recently used first. A sequence releases its last block first, so that of one chain
   the end is evicted before the beginning.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from itertools import chain, takewhile

import numpy as np

from ouzel.engine.sequence import Sequence


def chain_key(parent_key: bytes, token_ids: bytes) -> bytes:
    """Returns the key, 128 bits of BLAKE2b, of a block whose predecessor has `parent_key`."""
    return blake2b(token_ids, digest_size=16, key=parent_key).digest()


def root_key(cache_salt: str) -> bytes:
    """Returns the key before the first block; different salts never share."""
    return blake2b(cache_salt.encode(), digest_size=16).digest()


class PrefixCache:
    """Finds full blocks by content and remembers in which order unreferenced ones were released."""

    def __init__(self) -> None:
        self._block_by_key: dict[bytes, int] = {}
        self._content: dict[int, tuple[bytes, bytes]] = {}  # block -> (key, token ids)
        self._released: OrderedDict[int, None] = OrderedDict()  # unreferenced, oldest first
        self._pending: set[bytes] = set()  # keys of blocks that the current step computes

    def __len__(self) -> int:
        return len(self._released)

    def find(self, key: bytes, token_ids: bytes) -> int | None:
        block = self._block_by_key.get(key)
        if block is None or self._content[block][1] != token_ids:
            return None
        return block

    def insert(self, block: int, key: bytes, token_ids: bytes) -> None:
        """Makes a computed block findable, unless an equal one already is so."""
        if key not in self._block_by_key:
            self._block_by_key[key] = block
            self._content[block] = (key, token_ids)

    def release(self, block: int) -> bool:
        """Keeps an unreferenced block for later; returns False when it has no key and is simply free."""
        if block not in self._content:
            return False
        self._released[block] = None
        return True

    def revive(self, block: int) -> None:
        """Notes that an unreferenced block is referenced again."""
        self._released.pop(block, None)

    def evict(self) -> int:
        block, _ = self._released.popitem(last=False)
        key, _ = self._content.pop(block)
        del self._block_by_key[key]
        return block

    def expect(self, key: bytes) -> None:
        """Notes that the current step computes the block with this key."""
        self._pending.add(key)

    def is_expected(self, key: bytes) -> bool:
        return key in self._pending

    def step_done(self) -> None:
        self._pending.clear()


class BlockManager:
    """Gives blocks to sequences and takes them back."""

    def __init__(self, *, num_blocks: int, block_size: int, prefix_caching: bool) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._prefix_caching = prefix_caching
        self._free = list(range(num_blocks - 1, -1, -1))
        self._num_references = [0] * num_blocks
        self._cache = PrefixCache()
        self.num_query_tokens = 0  # prompt tokens looked up
        self.num_hit_tokens = 0

    @property
    def num_free_blocks(self) -> int:
        """Counts the blocks that can be allocated: free, or cached and unreferenced."""
        return len(self._free) + len(self._cache)

    @property
    def num_used_blocks(self) -> int:
        return self.num_blocks - self.num_free_blocks

    def num_releasable(self, sequences: Iterable[Sequence]) -> int:
        """Counts the blocks that nobody but these refers to."""
        num_references = Counter(chain.from_iterable(sequence.block_table for sequence in sequences))
        return sum(self._num_references[block] == num for block, num in num_references.items())

    def num_missing_blocks(self, sequence: Sequence, num_tokens: int) -> int:
        """Returns how many blocks to allocate before `num_tokens` tokens of the sequence fit."""
        return max(0, -(-num_tokens // self.block_size) - len(sequence.block_table))

    def num_forked_blocks(self, num_shared_tokens: int, num_tokens: int, width: int) -> int:
        """Returns how many blocks `width` sequences of `num_tokens` tokens need that have the first ones in common."""
        num_shared_blocks = num_shared_tokens // self.block_size
        return num_shared_blocks + width * (-(-num_tokens // self.block_size) - num_shared_blocks)

    def allocate(self, sequence: Sequence, num_tokens: int) -> bool:
        """Extends the block table to hold `num_tokens`; returns False, with nothing changed, for want of blocks."""
        num_missing = self.num_missing_blocks(sequence, num_tokens)
        if num_missing > self.num_free_blocks:
            return False
        for _ in range(num_missing):
            sequence.block_table.append(self._take())
        return True

    def release(self, sequence: Sequence) -> None:
        """Gives up all blocks; full ones stay in the prefix cache."""
        for block in reversed(sequence.block_table):
            self._num_references[block] -= 1
            if self._num_references[block] == 0 and not self._cache.release(block):
                self._free.append(block)
        sequence.block_table.clear()

    def share_prefix(self, sequence: Sequence) -> bool:
        """Fills an empty block table with cached blocks of the sequence's own tokens, `num_shareable_tokens` at most.

        Returns False when the next block is just being computed for another sequence: wait one step and share it.
        """
        assert not sequence.block_table
        if not self._prefix_caching:
            return True
        num_full = sequence.num_shareable_tokens // self.block_size
        for position in range(num_full):
            key, token_ids = self._block_content(sequence, position)
            block = self._cache.find(key, token_ids)
            if block is None:
                if self._cache.is_expected(key):
                    self._forget_prefix(sequence)
                    return False
                break
            self._reference(block)
            sequence.block_table.append(block)
        sequence.num_computed_tokens = len(sequence.block_table) * self.block_size
        return True

    def num_cached_tokens(self, sequence: Sequence) -> int:
        """Counts the tokens that `share_prefix` would find now."""
        num_full = sequence.num_shareable_tokens // self.block_size if self._prefix_caching else 0
        blocks = (self._cache.find(*self._block_content(sequence, position)) for position in range(num_full))
        return sum(1 for _ in takewhile(lambda block: block is not None, blocks)) * self.block_size

    def count_lookup(self, sequence: Sequence) -> None:
        """Counts what `share_prefix` found for a sequence that starts on it."""
        self.num_query_tokens += sequence.num_tokens
        self.num_hit_tokens += sequence.num_computed_tokens

    def expect_blocks(self, sequence: Sequence, num_new_tokens: int) -> None:
        """Announces the blocks that the coming step fills for this sequence."""
        for position in self._blocks_filled(sequence, num_new_tokens):
            self._cache.expect(self._block_content(sequence, position)[0])

    def cache_computed(self, sequence: Sequence, num_new_tokens: int) -> None:
        """Makes the blocks that the step filled findable; call before `num_computed_tokens` grows."""
        for position in self._blocks_filled(sequence, num_new_tokens):
            self._cache.insert(sequence.block_table[position], *self._block_content(sequence, position))

    def step_done(self) -> None:
        self._cache.step_done()

    def fork(self, parent: Sequence, child: Sequence) -> tuple[int, int] | None:
        """Gives the child the parent's computed tokens, and shares full blocks.

        Returns the partial one as (source, destination), which the caller copies; None when everything was shared. Ask
        `can_fork` first: a partial block needs a free one.
        """
        num_full, num_partial = divmod(parent.num_computed_tokens, self.block_size)
        for block in parent.block_table[:num_full]:
            self._reference(block)
            child.block_table.append(block)
        child.block_keys = parent.block_keys[:num_full]
        child.num_computed_tokens = parent.num_computed_tokens
        if num_partial == 0:
            return None
        child.block_table.append(self._take())
        return parent.block_table[num_full], child.block_table[num_full]

    def can_fork(self) -> bool:
        return self.num_free_blocks >= 1

    def _take(self) -> int:
        block = self._free.pop() if self._free else self._cache.evict()
        self._num_references[block] = 1
        return block

    def _reference(self, block: int) -> None:
        if self._num_references[block] == 0:
            self._cache.revive(block)
        self._num_references[block] += 1

    def _forget_prefix(self, sequence: Sequence) -> None:
        self.release(sequence)
        sequence.num_computed_tokens = 0

    def _blocks_filled(self, sequence: Sequence, num_new_tokens: int) -> range:
        """Returns the positions in the block table that become full by computing `num_new_tokens` more."""
        if not self._prefix_caching:
            return range(0)
        num_computed = sequence.num_computed_tokens
        return range(num_computed // self.block_size, (num_computed + num_new_tokens) // self.block_size)

    def _block_content(self, sequence: Sequence, position: int) -> tuple[bytes, bytes]:
        """Returns key and tokens of one full block; keys are computed once per sequence."""
        keys = sequence.block_keys
        while len(keys) <= position:
            parent_key = keys[-1] if keys else root_key(sequence.request.cache_salt)
            keys.append(chain_key(parent_key, self._block_tokens(sequence, len(keys))))
        return keys[position], self._block_tokens(sequence, position)

    def _block_tokens(self, sequence: Sequence, position: int) -> bytes:
        begin = position * self.block_size
        return np.array(sequence.token_ids[begin : begin + self.block_size], dtype=np.int64).tobytes()
