"""A simulated replica: computes prompts one after the other, decodes all answers at once, caches
both.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from benchmarks.routing.prompts import BLOCK_TOKENS, CachedText, Turn

TOKENS_PER_S = 4000.0  # prompt tokens per second
SECONDS_PER_TOKEN = 0.03  # answer tokens per second of a single answer
CACHE_BLOCKS = 1200  # 154k tokens
OVERHEAD_S = 0.005

Changed = Callable[[int, bool], None]  # block, whether it came rather than went


class Replica:
    def __init__(self, changed: Changed | None = None) -> None:
        """`changed` is called with blocks that come and go, as an engine publishes them."""
        self._cache: OrderedDict[int, None] = OrderedDict()
        self._free_at_s = 0.0
        self._changed = changed
        self._num_active = 0

    @property
    def num_cached_blocks(self) -> int:
        return len(self._cache)

    def start(self, turn: Turn, now_s: float) -> tuple[float, int]:
        """Returns the time of the first token, and the number of cached tokens of the prompt."""
        self._num_active += 1
        num_cached_tokens = BLOCK_TOKENS * self._num_found(turn.prompt.blocks)
        slowdown = 1 + min(self._num_active, 64) / 64  # answers are decoded beside it
        work_s = (turn.prompt.num_tokens - num_cached_tokens) / TOKENS_PER_S * slowdown
        self._free_at_s = max(now_s, self._free_at_s) + OVERHEAD_S + work_s
        self._keep(turn.prompt.blocks)
        return self._free_at_s, num_cached_tokens

    def decode_s(self, turn: Turn) -> float:
        return turn.num_output_tokens * SECONDS_PER_TOKEN * (1 + self._num_active / 32)

    def end(self, answered: CachedText) -> None:
        self._num_active -= 1
        self._keep(answered.blocks)

    def _num_found(self, blocks: Sequence[int]) -> int:
        for count, block in enumerate(blocks):
            if block not in self._cache:
                return count
        return len(blocks)

    def _keep(self, blocks: Sequence[int]) -> None:
        cache, changed = self._cache, self._changed
        for block in reversed(blocks):  # the end is evicted before the beginning
            if block in cache:
                cache.move_to_end(block)
            else:
                cache[block] = None
                if changed is not None:
                    changed(block, True)
        while len(cache) > CACHE_BLOCKS:
            block, _ = cache.popitem(last=False)
            if changed is not None:
                changed(block, False)
