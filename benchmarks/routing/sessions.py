"""Sessions of people, of agents and about documents: a turn follows some time after an answer."""

import itertools
import random
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.routing.prompts import BLOCK_TOKENS, CachedText, GrowingText, Turn


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties of a kind of session; ranges are of uniform distributions."""

    num_beginnings: int  # number of system prompts, tools or documents that sessions share
    exponent: float  # Zipf exponent of their popularity
    beginning_tokens: int
    turns: tuple[int, int]
    new_tokens: tuple[int, int]
    output_tokens: tuple[int, int]
    think_s: Callable[[random.Random], float]
    uncached_tokens: int  # mean number for a turn, if nothing is computed twice

    @property
    def mean_turns(self) -> float:
        return sum(self.turns) / 2


CHAT = Kind(40, 1.0, 1024, (1, 12), (20, 300), (50, 400), lambda rng: rng.expovariate(1 / 15), 400)
AGENTS = Kind(8, 1.0, 4096, (5, 40), (200, 2000), (20, 200), lambda rng: rng.uniform(1, 3), 1250)
DOCUMENTS = Kind(2000, 0.9, 6144, (1, 1), (20, 80), (50, 200), lambda _: 0.0, 1500)

WORKLOADS: dict[str, Sequence[Kind]] = {
    "chat": [CHAT],
    "agents": [AGENTS],
    "documents": [DOCUMENTS],
    "mix": [CHAT, AGENTS, DOCUMENTS],
}


class Session:
    """A session; `next_turn` begins a turn, `answered` ends it."""

    def __init__(self, number: int, kind: Kind, text: GrowingText, rng: random.Random) -> None:
        self._number = number
        self._kind = kind
        self._text = text
        self._rng = rng
        self._num_left = rng.randint(*kind.turns)
        self._num_output_tokens = 0

    def next_turn(self) -> Turn:
        self._text.grow(self._rng.randint(*self._kind.new_tokens))
        self._num_left -= 1
        self._num_output_tokens = self._rng.randint(*self._kind.output_tokens)
        return Turn(self._number, self._text.now(), self._num_output_tokens)

    def answered(self) -> CachedText:
        """Returns the prompt and the output."""
        self._text.grow(self._num_output_tokens)
        return self._text.now()

    def think_s(self) -> float | None:
        """Returns the seconds until the next turn; None means that there is none."""
        return self._kind.think_s(self._rng) if self._num_left else None


def arrivals(
    kinds: Sequence[Kind], *, uncached_tokens_per_s: float, seed: int
) -> Iterator[tuple[float, Session]]:
    """Yields sessions and their times without end.

    Their rate makes the given number of tokens per second necessary.
    """
    rng = random.Random(seed)
    numbers = itertools.count()
    popular = [_Zipf(kind.num_beginnings, kind.exponent) for kind in kinds]
    beginnings: dict[tuple[int, int], list[int]] = {}
    tokens_of_session = sum(kind.uncached_tokens * kind.mean_turns for kind in kinds) / len(kinds)
    now_s = 0.0
    for session in itertools.count():
        now_s += rng.expovariate(uncached_tokens_per_s / tokens_of_session)
        place = rng.randrange(len(kinds))
        kind, which = kinds[place], popular[place].draw(rng)
        if (place, which) not in beginnings:
            num_blocks = kind.beginning_tokens // BLOCK_TOKENS
            beginnings[place, which] = list(itertools.islice(numbers, num_blocks))
        text = GrowingText(session, beginnings[place, which], numbers)
        yield now_s, Session(session, kind, text, random.Random(rng.getrandbits(64)))


class _Zipf:
    def __init__(self, size: int, exponent: float) -> None:
        self._sums = list(itertools.accumulate(1 / (rank + 1) ** exponent for rank in range(size)))

    def draw(self, rng: random.Random) -> int:
        return bisect(self._sums, rng.random() * self._sums[-1])
