"""The policies of the simulation: the published rules of other routers, and the server's own
policy.

All policies know the requests that they have sent and that are unfinished. A policy with an index
of blocks uses the server's index of the prompts that it has sent to each replica. Only `precise`
knows the true content of the caches, as from an engine that publishes it.
"""

import math
import random
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

import msgspec

from benchmarks.routing.prompts import BLOCK_TOKENS, CachedText, Turn
from benchmarks.routing.replica import CACHE_BLOCKS, Changed
from ouzel.routing import PrefixPolicy, RequestKeys, Ticket, Weights
from ouzel.routing.block_index import BlockIndex

CACHE_TOKENS = CACHE_BLOCKS * BLOCK_TOKENS
Clock = Callable[[], float]


class Router(Protocol):
    """Chooses a replica, by number; the simulation reports each turn to it three times."""

    def send(self, turn: Turn) -> int: ...

    def first_token(self, turn: Turn) -> None: ...

    def end(self, turn: Turn, answered: CachedText) -> None: ...

    def cache_listener(self, replica: int) -> Changed | None: ...


class OwnRouter:
    """Drives the server's policy object."""

    def __init__(self, policy: PrefixPolicy, num_replicas: int) -> None:
        self._policy = policy
        self._names = [f"replica-{number}" for number in range(num_replicas)]
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._tickets: dict[int, Ticket] = {}  # id of a turn -> its record, until the turn's end

    def send(self, turn: Turn) -> int:
        name = self._policy.choose(turn.prompt.keys, self._names)[0]
        self._tickets[id(turn)] = self._policy.routed(turn.prompt.keys, name)
        return self._numbers[name]

    def first_token(self, turn: Turn) -> None:
        self._policy.first_token(self._tickets[id(turn)])

    def end(self, turn: Turn, answered: CachedText) -> None:
        self._policy.ended(self._tickets.pop(id(turn)), answered.keys)

    def cache_listener(self, replica: int) -> Changed | None:
        return None


class CountingRouter:
    """Counts the requests of each replica; `choose` decides by the counts."""

    def __init__(self, num_replicas: int, rng: random.Random) -> None:
        self.rng = rng
        self.replicas = range(num_replicas)
        self.unfinished = [0] * num_replicas
        self.waiting = [0] * num_replicas  # turns that wait for their first token
        self._sent: dict[int, int] = {}

    def choose(self, turn: Turn) -> int:
        raise NotImplementedError

    def learn(self, replica: int, keys: RequestKeys) -> None:
        """Records that the replica has got this prompt, or has answered it."""

    def send(self, turn: Turn) -> int:
        replica = self._sent[id(turn)] = self.choose(turn)
        self.unfinished[replica] += 1
        self.waiting[replica] += 1
        self.learn(replica, turn.prompt.keys)
        return replica

    def first_token(self, turn: Turn) -> None:
        self.waiting[self._sent[id(turn)]] -= 1

    def end(self, turn: Turn, answered: CachedText) -> None:
        replica = self._sent.pop(id(turn))
        self.unfinished[replica] -= 1
        self.learn(replica, answered.keys)

    def cache_listener(self, replica: int) -> Changed | None:
        return None

    def least_loaded(self, replicas: Sequence[int]) -> int:
        low = min(self.unfinished[replica] for replica in replicas)
        return self.rng.choice([replica for replica in replicas if self.unfinished[replica] == low])


class RandomRouter(CountingRouter):
    def choose(self, turn: Turn) -> int:
        return self.rng.choice(self.replicas)


class TwoChoices(CountingRouter):
    def choose(self, turn: Turn) -> int:
        return self.least_loaded([self.rng.choice(self.replicas), self.rng.choice(self.replicas)])


class LeastLoad(CountingRouter):
    def choose(self, turn: Turn) -> int:
        return self.least_loaded(self.replicas)


class SessionHash(CountingRouter):
    """Gives each session its own order of the replicas."""

    def __init__(
        self, num_replicas: int, rng: random.Random, *, bound: float | None = None
    ) -> None:
        super().__init__(num_replicas, rng)
        self._bound = bound
        self._orders: dict[bytes, list[int]] = {}

    def key(self, turn: Turn) -> bytes:
        return turn.prompt.keys.session

    def choose(self, turn: Turn) -> int:
        order = self._order(self.key(turn))
        if self._bound is None:
            return order[0]
        limit = math.ceil(self._bound * (sum(self.unfinished) + 1) / len(self.replicas))
        return next(replica for replica in order if self.unfinished[replica] < limit)

    def _order(self, key: bytes) -> list[int]:
        if key not in self._orders:
            ranks = [
                blake2b(bytes([*replica.to_bytes(2)]), digest_size=8, key=key).digest()
                for replica in self.replicas
            ]
            self._orders[key] = sorted(self.replicas, key=ranks.__getitem__)
        return self._orders[key]


class PrefixHash(SessionHash):
    """Hashes the first blocks of the prompt instead of the session, as KubeAI does."""

    def key(self, turn: Turn) -> bytes:
        keys = turn.prompt.keys
        return keys.blocks[min(1, len(keys.blocks) - 1)] if keys.blocks else keys.session


class IndexedRouter(CountingRouter):
    def __init__(self, num_replicas: int, rng: random.Random) -> None:
        super().__init__(num_replicas, rng)
        self._index = BlockIndex(1 << 22, CACHE_TOKENS)

    def learn(self, replica: int, keys: RequestKeys) -> None:
        self._index.add(keys, str(replica))

    def shares(self, turn: Turn) -> dict[int, float]:
        """Returns the cached share of the prompt, for the replicas that have a part of it."""
        keys = turn.prompt.keys
        held = self._index.num_held(keys.blocks).items()
        return {
            int(replica): keys.num_tokens_in(count) / keys.num_tokens for replica, count in held
        }


class CacheAware(IndexedRouter):
    """Takes the longest match if it is half of the prompt, else the least loaded, as SGLang does.

    It also takes the least loaded replica while the loads are out of balance.
    """

    def choose(self, turn: Turn) -> int:
        low, high = min(self.unfinished), max(self.unfinished)
        if high - low > 32 and high > 1.1 * low:
            return self.unfinished.index(low)
        shares = self.shares(turn)
        longest = max(shares.values(), default=0.0)
        if longest > 0.5:
            return self.least_loaded(
                [replica for replica, share in shares.items() if share == longest]
            )
        return self.least_loaded(self.replicas)


class EndpointPicker(IndexedRouter):
    """Adds scores for prefix, queue and load, 3 : 2 : 2, as llm-d's endpoint picker by default."""

    def choose(self, turn: Turn) -> int:
        shares = self.shares(turn)
        waiting, unfinished = _score(self.waiting), _score(self.unfinished)
        scores = [
            3 * shares.get(replica, 0.0) + 2 * waiting[replica] + 2 * unfinished[replica]
            for replica in self.replicas
        ]
        best = max(scores)
        return self.rng.choice([replica for replica in self.replicas if scores[replica] == best])


def _score(counts: list[int]) -> list[float]:
    """Returns 1 for the lowest count and 0 for the highest."""
    low, high = min(counts), max(counts)
    return [1.0 if low == high else (high - count) / (high - low) for count in counts]


class Precise(CountingRouter):
    """Applies the server's rule with the true content of the caches."""

    def __init__(
        self, num_replicas: int, rng: random.Random, weights: Weights, clock: Clock
    ) -> None:
        super().__init__(num_replicas, rng)
        self._weights = weights
        self._clock = clock
        self._holders: dict[int, int] = {}  # block -> a bit for each replica
        self._work = [0.0] * num_replicas
        self._recent = [0.0] * num_replicas
        self._recent_at_s = 0.0
        self._num_uncomputed: dict[int, tuple[int, float]] = {}  # key: id of the turn

    def cache_listener(self, replica: int) -> Changed | None:
        bit = 1 << replica

        def changed(block: int, came: bool) -> None:
            holders = self._holders.get(block, 0)
            self._holders[block] = holders | bit if came else holders & ~bit

        return changed

    def choose(self, turn: Turn) -> int:
        weights = self._weights
        faded = 0.5 ** ((self._clock() - self._recent_at_s) / weights.half_life_s)
        self._recent = [work * faded for work in self._recent]
        self._recent_at_s = self._clock()
        missing = self._missing(turn)
        costs = [
            self._work[replica]
            + missing[replica]
            + weights.unfinished_tokens * self.unfinished[replica]
            + weights.recent * self._recent[replica]
            for replica in self.replicas
        ]
        best = costs.index(min(costs))
        self._work[best] += missing[best]
        self._recent[best] += missing[best]
        self._num_uncomputed[id(turn)] = (best, missing[best])
        return best

    def first_token(self, turn: Turn) -> None:
        super().first_token(turn)
        replica, missing = self._num_uncomputed.pop(id(turn))
        self._work[replica] -= missing

    def _missing(self, turn: Turn) -> list[float]:
        missing = [float(turn.prompt.num_tokens)] * len(self.replicas)
        holding = (1 << len(self.replicas)) - 1
        for count, block in enumerate([*turn.prompt.blocks, -1]):
            still = self._holders.get(block, 0) & holding
            gone = holding ^ still
            while gone:
                bit = gone & -gone
                missing[bit.bit_length() - 1] -= BLOCK_TOKENS * count
                gone ^= bit
            if not still:
                break
            holding = still
        return missing


def make_router(
    name: str, num_replicas: int, rng: random.Random, clock: Clock, weights: Weights
) -> Router:
    return _MAKERS[name](_Setting(num_replicas, rng, clock, weights))


class _Setting(NamedTuple):
    num_replicas: int
    rng: random.Random
    clock: Clock
    weights: Weights

    def own(self, weights: Weights) -> OwnRouter:
        return OwnRouter(
            PrefixPolicy(cache_tokens=CACHE_TOKENS, weights=weights, clock=self.clock),
            self.num_replicas,
        )


OURS = "**least work + recent**"
_MAKERS: dict[str, Callable[[_Setting], Router]] = {
    "random": lambda the: RandomRouter(the.num_replicas, the.rng),
    "power of two": lambda the: TwoChoices(the.num_replicas, the.rng),
    "least load": lambda the: LeastLoad(the.num_replicas, the.rng),
    "session hash": lambda the: SessionHash(the.num_replicas, the.rng),
    "session hash, bound 1.25": lambda the: SessionHash(the.num_replicas, the.rng, bound=1.25),
    "prefix hash, bound 1.25": lambda the: PrefixHash(the.num_replicas, the.rng, bound=1.25),
    "cache-aware (SGLang)": lambda the: CacheAware(the.num_replicas, the.rng),
    "EPP scores 3:2:2": lambda the: EndpointPicker(the.num_replicas, the.rng),
    "least work": lambda the: the.own(msgspec.structs.replace(the.weights, recent=0.0)),
    OURS: lambda the: the.own(the.weights),
    "the same, precise": lambda the: Precise(the.num_replicas, the.rng, the.weights, the.clock),
}
POLICIES = tuple(_MAKERS)
