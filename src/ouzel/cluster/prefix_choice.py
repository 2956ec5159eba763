"""Which replica gets a request, where nobody tells when requests end: replicas tell now and then how many they have.

Rules
1. A request that was given to a replica counts there until the replica has told that it has fewer: the oldest are
   taken to have ended.
2. What a replica tells is old when it comes. Requests that are younger than that it may not know of, so they count.
3. A longer prompt of the same session is its next turn: the one before has ended.
4. What a replica has besides came by other ways: through other doors, without a body, in the background. It counts too.
"""

import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from ouzel.cluster.replica_load import ReplicaLoad
from ouzel.routing import PrefixPolicy, RequestKeys, RoutingPolicy, Ticket, body_keys

TOLD_LATE_S = 3.0  # Ray asks replicas each second, and tells what they said when its controller comes around to it


class _Given(msgspec.Struct, eq=False):
    ticket: Ticket
    at_s: float
    has_begun: bool = False  # its prompt is taken to be computed


class PrefixChoice:
    """It remembers what it has given to which replica."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cache_tokens = 0  # of a replica, as the first one told
        self._policy: RoutingPolicy = PrefixPolicy(clock=clock)
        self._given: dict[str, deque[_Given]] = {}  # by replica, the oldest first
        self._last_turns: dict[bytes, _Given] = {}  # by session; of those that are given

    def replica_for(self, body: bytes, loads: Mapping[str, ReplicaLoad]) -> str:
        """Returns one of the replicas, of which there are some; it is taken to get the request."""
        self._learn_cache_tokens(loads)
        for gone in self._given.keys() - loads.keys():
            self._forget(gone)
        for name, load in loads.items():
            self._settle(name, load)
        keys = body_keys(body)
        if keys is not None:
            self._end_turn_before(keys)
        replica = self._policy.choose(keys, list(loads))[0]
        given = _Given(self._policy.routed(keys, replica), self._clock())
        self._given[replica].append(given)
        if keys is not None:
            self._last_turns[keys.session] = given
        return replica

    def _learn_cache_tokens(self, loads: Mapping[str, ReplicaLoad]) -> None:
        """Begins anew when the first replica tells; all have about the same."""
        told = min((load.cache_tokens for load in loads.values() if load.cache_tokens), default=0)
        if told and not self._cache_tokens:
            self._cache_tokens = told
            self._policy = PrefixPolicy(cache_tokens=told, clock=self._clock)
            self._given.clear()
            self._last_turns.clear()

    def _forget(self, replica: str) -> None:
        self._policy.forget(replica)
        for given in self._given.pop(replica):
            self._drop_turn(given)

    def _settle(self, replica: str, load: ReplicaLoad) -> None:
        given = self._given.setdefault(replica, deque())
        told_s = self._clock() - TOLD_LATE_S
        num_young = sum(
            1 for _ in itertools.takewhile(lambda each: each.at_s > told_s, reversed(given))
        )
        for _ in range(len(given) - num_young - load.num_unfinished):
            self._end(given[0])
        for _ in range(load.num_unfinished - len(given)):
            given.appendleft(_Given(self._policy.routed(None, replica), told_s))
        for each in itertools.islice(given, max(0, len(given) - num_young - load.num_waiting)):
            if not each.has_begun:
                self._policy.first_token(each.ticket)
                each.has_begun = True

    def _end_turn_before(self, keys: RequestKeys) -> None:
        before = self._last_turns.get(keys.session)
        if before is None or before.ticket.keys is None:
            return
        if keys.is_continued or keys.num_tokens > before.ticket.keys.num_tokens:
            self._end(before)

    def _end(self, given: _Given) -> None:
        self._given[given.ticket.replica].remove(given)
        self._policy.ended(given.ticket)
        self._drop_turn(given)

    def _drop_turn(self, given: _Given) -> None:
        keys = given.ticket.keys
        if keys is not None and self._last_turns.get(keys.session) is given:
            del self._last_turns[keys.session]
