"""The prompts of a session, which grow turn by turn; caches hold them in blocks of 128 tokens."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.routing import RequestKeys
from ouzel.routing.keys import cut_pieces

BLOCK_TOKENS = 128


@dataclass(frozen=True, slots=True)
class Turn:
    session: int
    prompt: "CachedText"
    num_output_tokens: int


@dataclass(frozen=True, slots=True)
class CachedText:
    """The blocks of a text: equal numbers of blocks mean equal texts up to there."""

    blocks: Sequence[int]  # whole ones
    num_tokens: int
    keys: RequestKeys


class GrowingText:
    """A text that begins with another text, and then has block numbers of its own."""

    def __init__(
        self, session: int, beginning: Sequence[int], numbers: "itertools.count[int]"
    ) -> None:
        self._session = session.to_bytes(8, "little")
        self._blocks = list(beginning)
        self._num_tokens = BLOCK_TOKENS * len(beginning)
        self._numbers = numbers
        self._keys: list[bytes] = []

    @property
    def num_tokens(self) -> int:
        return self._num_tokens

    def grow(self, num_tokens: int) -> None:
        self._num_tokens += num_tokens
        num_missing = self._num_tokens // BLOCK_TOKENS - len(self._blocks)
        self._blocks += itertools.islice(self._numbers, num_missing)

    def now(self) -> CachedText:
        add_keys(self._keys, self._blocks, self._num_tokens)
        keys = RequestKeys(self._session, tuple(self._keys), self._num_tokens, BLOCK_TOKENS)
        return CachedText(tuple(self._blocks), self._num_tokens, keys)


def add_keys(keys: list[bytes], blocks: Sequence[int], num_tokens: int) -> None:
    """Adds the keys of a text's pieces.

    The key of a piece is the number of its last block, which stands for all blocks before it.
    """
    for _, end in cut_pieces(num_tokens, BLOCK_TOKENS, first=len(keys)):
        keys.append(blocks[end // BLOCK_TOKENS - 1].to_bytes(8, "little"))
