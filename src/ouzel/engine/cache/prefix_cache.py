"""Finds full blocks of the KV cache by their content."""

from collections import OrderedDict
from hashlib import blake2b


def chain_key(parent_key: bytes, token_ids: bytes) -> bytes:
    """Returns the key of a block, 128 bits of BLAKE2b, from its tokens and its predecessor's
    key.
    """
    return blake2b(token_ids, digest_size=16, key=parent_key).digest()


def root_key(cache_salt: str, adapter: bytes = b"") -> bytes:
    """Returns the key before the first block.

    Different salts or adapter digests never share blocks.
    """
    return blake2b(cache_salt.encode(), digest_size=16, key=adapter).digest()


class PrefixCache:
    """Finds full blocks by key, and evicts unreferenced blocks in the order of their release."""

    def __init__(self) -> None:
        self._block_by_key: dict[bytes, int] = {}
        self._content: dict[int, tuple[bytes, bytes]] = {}  # block -> (key, token ids)
        self._released: OrderedDict[int, None] = OrderedDict()  # unreferenced blocks, oldest first
        self._pending: set[bytes] = set()  # keys of blocks that the current step computes

    def __len__(self) -> int:
        return len(self._released)

    def find(self, key: bytes, token_ids: bytes) -> int | None:
        block = self._block_by_key.get(key)
        if block is None or self._content[block][1] != token_ids:
            return None
        return block

    def insert(self, block: int, key: bytes, token_ids: bytes) -> None:
        """Makes a computed block findable, unless an equal block already is."""
        if key not in self._block_by_key:
            self._block_by_key[key] = block
            self._content[block] = (key, token_ids)

    def release(self, block: int) -> bool:
        """Keeps an unreferenced block for later hits; returns False if the block has no key."""
        if block not in self._content:
            return False
        self._released[block] = None
        return True

    def revive(self, block: int) -> None:
        """Marks a released block as referenced again."""
        self._released.pop(block, None)

    def evict(self) -> tuple[int, bytes]:
        """Removes the block that was released first; returns it with its key."""
        block, _ = self._released.popitem(last=False)
        key, _ = self._content.pop(block)
        del self._block_by_key[key]
        return block, key

    def expect(self, key: bytes) -> None:
        """Notes that the current step computes the block with this key."""
        self._pending.add(key)

    def is_expected(self, key: bytes) -> bool:
        return key in self._pending

    def step_done(self) -> None:
        self._pending.clear()
