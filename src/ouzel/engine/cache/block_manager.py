"""Hands out the KV cache in blocks; full blocks can be shared.

Rules
1. A block is free, referenced (by one or more block tables), or cached: unreferenced but still
   findable by its key.
2. Only full, computed blocks get a key (where rows have kinds, only blocks of prompts). A block
   with a key is never written again.
3. A key is a digest chained over the tokens before it, their images, the request's cache salt and
   its adapter. A hit also compares tokens and images.
4. Cached blocks are evicted least recently used first. A sequence releases its last block first, so
   the end of a chain is evicted before its beginning.
5. If the model has states (`state_slots`), a shared prefix ends where a state is kept.
6. Blocks in the `store` of earlier runs count as cached; they are loaded after the cached blocks of
   a prefix.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain, takewhile

from ouzel.engine.cache.block_content import block_content
from ouzel.engine.cache.prefix_cache import PrefixCache
from ouzel.engine.cache.prefix_store import PrefixStore, StoredRow, block_name
from ouzel.engine.cache.state_slots import StateSlots
from ouzel.engine.cache.stored_rows import stored_rows
from ouzel.engine.state.sequence import Sequence


class BlockManager:
    """Allocates blocks to sequences, shares them and takes them back."""

    def __init__(
        self,
        *,
        num_blocks: int,
        block_size: int,
        prefix_caching: bool,
        states: StateSlots | None = None,
        store: PrefixStore | None = None,
    ) -> None:
        """A `store` needs `prefix_caching`."""
        assert prefix_caching or store is None
        self.states = states
        self.store = store
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
        """Counts the blocks that only the given sequences refer to."""
        num_references = Counter(
            chain.from_iterable(sequence.block_table for sequence in sequences)
        )
        return sum(self._num_references[block] == num for block, num in num_references.items())

    def num_missing_blocks(self, sequence: Sequence, num_tokens: int) -> int:
        """Returns how many blocks to allocate before `num_tokens` tokens of the sequence fit."""
        return max(0, -(-num_tokens // self.block_size) - len(sequence.block_table))

    def num_forked_blocks(self, num_shared_tokens: int, num_tokens: int, width: int) -> int:
        """Returns the number of blocks of `width` sequences of `num_tokens` tokens with a common
        prompt.
        """
        num_shared_blocks = num_shared_tokens // self.block_size
        return num_shared_blocks + width * (-(-num_tokens // self.block_size) - num_shared_blocks)

    def allocate(self, sequence: Sequence, num_tokens: int) -> bool:
        """Extends the block table to hold `num_tokens`.

        Returns False without a change if blocks are lacking.
        """
        num_missing = self.num_missing_blocks(sequence, num_tokens)
        if num_missing > self.num_free_blocks:
            return False
        for _ in range(num_missing):
            sequence.block_table.append(self._take())
        return True

    def release(self, sequence: Sequence) -> None:
        """Releases all blocks.

        Full blocks stay in the prefix cache, with the state after the last of them.
        """
        if self.states is not None:
            self._keep_boundary(sequence, self.states)
            self.states.release(sequence)
        elif sequence.is_past_prompt:
            self._offer(sequence, sequence.num_prompt_tokens)
        for block in reversed(sequence.block_table):
            self._unreference(block)
        sequence.block_table.clear()
        sequence.drafting = None  # its cache lay in these blocks

    def share_prefix(self, sequence: Sequence) -> bool:
        """Fills an empty block table with cached blocks of the sequence's first
        `num_shareable_tokens`.

        Returns False if the sequence should wait a step: its next block is being computed for
        another sequence, or the store has more blocks than one step loads.
        """
        assert not sequence.block_table
        if not self._prefix_caching:
            return True
        is_done = self._share_cached(sequence, sequence.num_shareable_tokens // self.block_size)
        if is_done and self.store is not None:
            is_done = self._share_stored(sequence, self.store)
        if not is_done:
            self.release(sequence)
            sequence.num_computed_tokens = 0
            return False
        if self.states is not None:
            self._resume(sequence, self.states)
        sequence.num_computed_tokens = len(sequence.block_table) * self.block_size
        return True

    def num_cached_tokens(self, sequence: Sequence) -> int:
        """Counts the tokens that `share_prefix` would find now, perhaps over several steps."""
        return self._num_resumable(sequence, self._num_found(sequence)) * self.block_size

    def count_lookup(self, sequence: Sequence) -> None:
        """Counts the tokens that `share_prefix` found for a sequence that starts."""
        self.num_query_tokens += sequence.num_tokens
        self.num_hit_tokens += sequence.num_computed_tokens

    def expect_blocks(self, sequence: Sequence, num_new_tokens: int) -> None:
        """Announces the blocks that the coming step fills for this sequence."""
        for position in self._blocks_filled(sequence, num_new_tokens):
            self._cache.expect(block_content(sequence, position, self.block_size)[0])

    def mark_computed(self, sequence: Sequence, num_new_tokens: int) -> None:
        """Records the computed tokens: makes full blocks findable and advances the state."""
        for position in self._blocks_filled(sequence, num_new_tokens):
            self._cache.insert(
                sequence.block_table[position], *block_content(sequence, position, self.block_size)
            )
        is_kept = num_new_tokens == self._num_tokens_to_keep(sequence)
        sequence.num_computed_tokens += num_new_tokens
        if self.states is not None:
            is_boundary = (
                self._prefix_caching and sequence.num_computed_tokens % self.block_size == 0
            )
            self.states.advance(sequence, is_boundary=is_boundary)
            if is_kept:
                self._keep_boundary(sequence, self.states)

    def chunk_limit(self, sequence: Sequence) -> int:
        """Returns the maximum length of a chunk: it ends where a state is to be kept."""
        return self._num_tokens_to_keep(sequence) or sequence.num_uncomputed_tokens

    def step_done(self) -> None:
        self._cache.step_done()
        if self.store is not None:
            self.store.step_done()

    def fork(self, parent: Sequence, child: Sequence) -> tuple[int, int] | None:
        """Gives the child the parent's computed tokens and shares the full blocks.

        Returns the partial block as (source, destination) for the caller to copy; None if all
        blocks are shared. A partial block needs a free block: the caller asks `can_fork` first.
        """
        num_full, num_partial = divmod(parent.num_computed_tokens, self.block_size)
        for block in parent.block_table[:num_full]:
            self._reference(block)
            child.block_table.append(block)
        child.block_keys = parent.block_keys[:num_full]
        child.num_computed_tokens = parent.num_computed_tokens
        # the parent offers the prompt, which is the same
        child.num_offered_tokens = parent.num_prompt_tokens
        if self.states is not None:
            self.states.fork(parent, child)
        if num_partial == 0:
            return None
        child.block_table.append(self._take())
        return parent.block_table[num_full], child.block_table[num_full]

    def unused_blocks(self, number: int) -> list[int] | None:
        """Returns free blocks for a trial, without allocating them; None if there are too few."""
        return self._free[-number:] if number <= len(self._free) else None

    def can_fork(self) -> bool:
        return self.num_free_blocks >= 1

    def _share_cached(self, sequence: Sequence, end: int) -> bool:
        """Appends cached blocks up to position `end`.

        Returns False if the next block is being computed.
        """
        for position in range(len(sequence.block_table), end):
            key, token_ids = block_content(sequence, position, self.block_size)
            block = self._cache.find(key, token_ids)
            if block is None:
                return not self._cache.is_expected(key)
            self._reference(block)
            sequence.block_table.append(block)
        return True

    def _share_stored(self, sequence: Sequence, store: PrefixStore) -> bool:
        """Appends stored blocks and the cached blocks between them.

        Returns False if this step cannot load the next stored block, or it is being computed.
        """
        num_wanted = self._num_resumable(sequence, self._num_found(sequence))
        while len(sequence.block_table) < num_wanted and self.num_free_blocks:
            if not store.num_loadable:
                return False
            is_whole = self._load(sequence, num_wanted, store)
            if not self._share_cached(sequence, num_wanted):
                return False
            if not is_whole:
                break
        return True

    def _load(self, sequence: Sequence, end: int, store: PrefixStore) -> bool:
        """Loads stored blocks and appends them to the block table, before block number `end`.

        The load may stop before `end`. Returns False if no block was appended or a block could not
        be read.
        """
        begin = len(sequence.block_table)
        rows = []
        for position in range(
            begin, min(end, begin + store.num_loadable, begin + self.num_free_blocks)
        ):
            key, token_ids = block_content(sequence, position, self.block_size)
            if block_name(key) not in store or self._cache.find(key, token_ids) is not None:
                break
            rows.append(StoredRow(block_name(key), token_ids, self._take()))
        num_loaded = store.load(rows)
        for row in rows[:num_loaded]:
            self._cache.insert(row.row, sequence.block_keys[len(sequence.block_table)], row.content)
            sequence.block_table.append(row.row)
        for row in rows[num_loaded:]:
            self._unreference(row.row)
        return 0 < num_loaded == len(rows)

    def _offer(self, sequence: Sequence, num_tokens: int) -> None:
        """Offers the blocks of the first `num_tokens` prompt tokens to the store, once."""
        if (
            self.store is not None
            and sequence.num_offered_tokens < num_tokens <= sequence.num_prompt_tokens
        ):
            sequence.num_offered_tokens = num_tokens
            self.store.offer(
                stored_rows(sequence, num_tokens, self.block_size, self._cache, self.states)
            )

    def _num_found(self, sequence: Sequence) -> int:
        """Counts the sequence's first full blocks that are cached or stored."""
        num_full = sequence.num_shareable_tokens // self.block_size if self._prefix_caching else 0
        contents = (
            block_content(sequence, position, self.block_size) for position in range(num_full)
        )
        return sum(1 for _ in takewhile(self._is_found, contents))

    def _is_found(self, content: tuple[bytes, bytes]) -> bool:
        is_stored = self.store is not None and block_name(content[0]) in self.store
        return is_stored or self._cache.find(*content) is not None

    def _keep_boundary(self, sequence: Sequence, states: StateSlots) -> None:
        if sequence.num_boundary_tokens:
            last_block = sequence.num_boundary_tokens // self.block_size - 1
            key, token_ids = block_content(sequence, last_block, self.block_size)
            if self._cache.find(key, token_ids) is not None:
                states.keep(key, sequence)
                self._offer(sequence, sequence.num_boundary_tokens)

    def _num_tokens_to_keep(self, sequence: Sequence) -> int:
        """Returns the number of prompt tokens up to the next state to keep; 0 if there is none."""
        if self.states is None or not self._prefix_caching or sequence.is_past_prompt:
            return 0
        last_full = (sequence.num_tokens - 1) // self.block_size * self.block_size
        places = (sequence.num_diverged_tokens, last_full)
        return next(
            (
                place - sequence.num_computed_tokens
                for place in places
                if place > sequence.num_computed_tokens
            ),
            0,
        )

    def _num_resumable(self, sequence: Sequence, num_blocks: int) -> int:
        """Returns how many of the found blocks are usable: the blocks up to the last kept state."""
        if self.states is None:
            return num_blocks
        keys = sequence.block_keys
        return next(
            (count for count in range(num_blocks, 0, -1) if self.states.is_found(keys[count - 1])),
            0,
        )

    def _resume(self, sequence: Sequence, states: StateSlots) -> None:
        """Releases the blocks after the last kept state.

        Sets `num_diverged_tokens` to their end.
        """
        num_found = self._num_found(sequence)
        num_used = self._num_resumable(sequence, len(sequence.block_table))
        while num_used and not states.fetch(sequence.block_keys[num_used - 1]):
            num_used = self._num_resumable(sequence, num_used)
        sequence.num_diverged_tokens = num_found * self.block_size if num_used < num_found else 0
        for block in reversed(sequence.block_table[num_used:]):
            self._unreference(block)
        del sequence.block_table[num_used:]
        if num_used:
            states.resume(sequence.block_keys[num_used - 1], sequence, num_used * self.block_size)

    def _take(self) -> int:
        if self._free:
            block = self._free.pop()
        else:
            block, key = self._cache.evict()
            if self.store is not None:
                self.store.withdraw(block_name(key))
            if self.states is not None:
                self.states.forget(key)
        self._num_references[block] = 1
        return block

    def _reference(self, block: int) -> None:
        if self._num_references[block] == 0:
            self._cache.revive(block)
        self._num_references[block] += 1

    def _unreference(self, block: int) -> None:
        self._num_references[block] -= 1
        if self._num_references[block] == 0 and not self._cache.release(block):
            self._free.append(block)

    def _blocks_filled(self, sequence: Sequence, num_new_tokens: int) -> range:
        """Returns the block table positions that become full by computing `num_new_tokens` more."""
        if not self._prefix_caching:
            return range(0)
        end = min(sequence.num_computed_tokens + num_new_tokens, sequence.num_findable_tokens)
        return range(sequence.num_computed_tokens // self.block_size, end // self.block_size)
