"""Sends each request to the replica with the least expected work before its first token.

Rules
1. The expected work of a replica is a number of tokens: the uncomputed tokens of its prompts, the
   tokens that it would have to compute for this prompt, and a small amount for each unfinished
   request, whose decoding slows it down.
2. A share of its recent work is added. Without it a prefix that many sessions have in common would
   gather them on the replicas that hold it, whose load comes later.
3. Rendezvous hashing of the session decides between equal replicas, so independent routers agree.
4. A chain whose history the server has is expected at its last replica; an unknown chain is
   expected at its rendezvous replica.
5. A replica is expected to hold the prompts that were sent to it, without those evicted from a
   cache of known size (`cache_tokens`). Nothing here does I/O, and all memory is bounded.
"""

import heapq
import itertools
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from operator import itemgetter

import msgspec

from ouzel.routing.block_index import BlockIndex
from ouzel.routing.keys import RequestKeys
from ouzel.routing.policy import Ticket

_QUANTUM_TOKENS = 64  # differences below this do not count
_UNKNOWN_HISTORY_TOKENS = 2000  # assumed history of an unknown chain
_MAX_CHAINS = 1 << 16
_MAX_HALF_LIVES = 50.0  # then recent work is rescaled: numbers stay small
_MAX_COMPARED = 128  # candidates; with more, likely ones are picked first
_MASK = (1 << 64) - 1


class Weights(msgspec.Struct, frozen=True):
    """Weights of the expected work, tuned by `benchmarks/routing`."""

    unfinished_tokens: float = 50.0  # work of an unfinished request
    recent: float = 0.1  # share of the recent work that counts
    half_life_s: float = 80.0  # time after which recent work counts half


class _Replica:
    """The work of a replica, from its first request until it is forgotten."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seed = _number(name.encode())
        # ticket -> tokens of its prompt that are not computed yet
        self.unfinished: dict[int, int] = {}
        self.num_uncomputed_tokens = 0
        self.recent = 0.0  # scaled to the time when the policy began to count

    def compute(self, number: int) -> None:
        self.num_uncomputed_tokens -= self.unfinished[number]
        self.unfinished[number] = 0


class PrefixPolicy:
    """Implements `RoutingPolicy` by expected work."""

    def __init__(
        self,
        *,
        max_blocks: int = 1 << 18,
        cache_tokens: int | None = None,
        weights: Weights = Weights(),  # noqa: B008  # frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`max_blocks` limits the index of all replicas.

        `cache_tokens` is a replica's cache size, if known.
        """
        self._index = BlockIndex(max_blocks, cache_tokens)
        self._weights = weights
        self._clock = clock
        self._replicas: dict[str, _Replica] = {}
        # session -> replica, tokens of history
        self._chains: OrderedDict[bytes, tuple[_Replica, int]] = OrderedDict()
        self._numbers = itertools.count()
        self._begun_s = clock()

    @property
    def num_blocks(self) -> int:
        """Counts the blocks in the index."""
        return len(self._index)

    def choose(self, keys: RequestKeys | None, candidates: Sequence[str]) -> list[str]:
        session = _number(b"" if keys is None else keys.session)
        held = {} if keys is None else self._held(keys, candidates)
        are_few = keys is None or len(candidates) <= _MAX_COMPARED
        compared = candidates if are_few else _likely(candidates, held, session)
        order = self._by_cost([self._replica(name) for name in compared], held)
        equal = [replica.name for cost, replica in order if cost == order[0][0]]
        if len(equal) > 1:
            equal.sort(key=lambda name: _rank(self._replicas[name], session), reverse=True)
        best = equal + [replica.name for _, replica in order[len(equal) :]]
        return best if are_few else list(dict.fromkeys(itertools.chain(best, candidates)))

    def routed(self, keys: RequestKeys | None, replica: str) -> Ticket:
        num_tokens = 0
        state = self._replica(replica)
        if keys is not None:
            num_tokens = self._uncomputed_tokens(keys, state)
            self._add(keys, state)
        ticket = Ticket(next(self._numbers), replica, num_tokens, keys)
        state.unfinished[ticket.number] = num_tokens
        state.num_uncomputed_tokens += num_tokens
        state.recent += num_tokens / self._recent_scale()
        return ticket

    def first_token(self, ticket: Ticket) -> None:
        if (state := self._holder(ticket)) is not None:
            state.compute(ticket.number)

    def ended(self, ticket: Ticket, final_keys: RequestKeys | None = None) -> None:
        if (state := self._holder(ticket)) is None:
            return
        state.compute(ticket.number)
        del state.unfinished[ticket.number]
        if final_keys is not None:
            self._add(final_keys, state)

    def forget(self, replica: str) -> None:
        self._replicas.pop(replica, None)
        self._index.forget(replica)

    def _replica(self, name: str) -> _Replica:
        state = self._replicas.get(name)
        if state is None:
            state = self._replicas[name] = _Replica(name)
        return state

    def _holder(self, ticket: Ticket) -> _Replica | None:
        """Returns the replica of an open request.

        None if it was forgotten or the request has ended.
        """
        state = self._replicas.get(ticket.replica)
        return state if state is not None and ticket.number in state.unfinished else None

    def _by_cost(
        self, replicas: list[_Replica], held: dict[str, int]
    ) -> list[tuple[float, _Replica]]:
        """Returns the replicas with the expected work before a new request, in quanta of tokens.

        The replica with the least work is the first. Tokens of the prompt that a replica has in its
        cache (`held`) are subtracted from its work.
        """
        of_recent = self._weights.recent * self._recent_scale()
        of_unfinished = self._weights.unfinished_tokens
        costs = [
            (
                replica.num_uncomputed_tokens
                + of_unfinished * len(replica.unfinished)
                + of_recent * replica.recent
                - held.get(replica.name, 0)
            )
            // _QUANTUM_TOKENS
            for replica in replicas
        ]
        return sorted(zip(costs, replicas, strict=True), key=itemgetter(0))

    def _held(self, keys: RequestKeys, candidates: Sequence[str]) -> dict[str, int]:
        """Returns the expected number of cached prompt tokens of each replica that has any."""
        if not keys.is_continued or not candidates:
            return {
                name: keys.num_tokens_in(count)
                for name, count in self._index.num_held(keys.blocks).items()
            }
        if (known := self._chain(keys)) is not None:
            return {known[0].name: known[1]}
        session = _number(keys.session)
        best = max(map(self._replica, candidates), key=lambda replica: _rank(replica, session))
        return {best.name: _UNKNOWN_HISTORY_TOKENS}

    def _uncomputed_tokens(self, keys: RequestKeys, state: _Replica) -> int:
        """Returns the number of prompt tokens that the replica is expected to compute."""
        if not keys.is_continued:
            return keys.num_tokens - keys.num_tokens_in(
                self._index.num_held_by(state.name, keys.blocks)
            )
        known = self._chain(keys)
        return keys.num_tokens if known is None or known[0] is state else keys.num_tokens + known[1]

    def _chain(self, keys: RequestKeys) -> tuple[_Replica, int] | None:
        """Returns the last replica of a chain and its length there; None if the replica is gone."""
        known = self._chains.get(keys.session)
        return (
            known if known is not None and self._replicas.get(known[0].name) is known[0] else None
        )

    def _add(self, keys: RequestKeys, state: _Replica) -> None:
        """Records that the replica has the prompt."""
        if not keys.is_continued:
            self._index.add(keys, state.name)
            return
        known = self._chain(keys)
        history = _UNKNOWN_HISTORY_TOKENS if known is None else known[1]
        self._chains[keys.session] = (state, history + keys.num_tokens)
        self._chains.move_to_end(keys.session)
        if len(self._chains) > _MAX_CHAINS:
            self._chains.popitem(last=False)

    def _recent_scale(self) -> float:
        """Returns the present weight of work from the time when the policy began to count."""
        half_lives = (self._clock() - self._begun_s) / self._weights.half_life_s
        if half_lives < _MAX_HALF_LIVES:
            return math.exp2(-half_lives)
        for state in self._replicas.values():
            state.recent *= math.exp2(-half_lives)
        self._begun_s = self._clock()
        return 1.0


def _likely(candidates: Sequence[str], held: dict[str, int], session: int) -> list[str]:
    """Returns the best holders, and as many other candidates from a place that the session
    chooses.
    """
    half = _MAX_COMPARED // 2
    holders = heapq.nlargest(
        half, (name for name in candidates if name in held), key=held.__getitem__
    )
    place = session % len(candidates)
    others = itertools.islice(itertools.chain(candidates[place:], candidates), half)
    return list(dict.fromkeys(itertools.chain(holders, others)))


def _rank(replica: _Replica, session: int) -> int:
    """Returns a pseudo-random number of replica and session; the highest one wins (rendezvous)."""
    mixed = ((replica.seed ^ session) * 0x9E3779B97F4A7C15) & _MASK
    return ((mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9) & _MASK


def _number(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
