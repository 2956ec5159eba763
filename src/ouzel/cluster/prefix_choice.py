"""Chooses the replica that has a request's prefix in its cache.

No message tells when a request ends. Instead, each replica reports the number of its requests
periodically.

Rules
1. A request counts for its replica until the replica reports fewer requests: then the oldest ones
   are taken to have ended.
2. A report is old when it arrives. Requests younger than the report may be missing in it, so they
   count in addition.
3. A longer prompt of the same session is its next turn: the turn before has ended.
4. A replica may report more requests than this object has counted: requests through other choosers,
   without a body, or in the background. They count too.
"""

import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from ouzel.cluster.replica_load import ReplicaLoad
from ouzel.routing import PrefixPolicy, RequestKeys, RoutingPolicy, Ticket, make_body_keys

MAX_REPORT_DELAY_S = (
    3.0  # Ray asks replicas each second, and passes their reports on some time later
)


class _OpenRequest(msgspec.Struct, eq=False):
    ticket: Ticket
    sent_at_s: float
    has_begun: bool = False  # True: its prompt counts as computed


class PrefixChoice:
    """Chooses a replica for each request, and keeps the open requests of each replica."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cache_tokens = 0  # cache size of a replica in tokens, from the first report
        self._policy: RoutingPolicy = PrefixPolicy(clock=clock)
        # by replica, the oldest request first
        self._open_requests: dict[str, deque[_OpenRequest]] = {}
        self._last_turns: dict[bytes, _OpenRequest] = {}  # the latest open request of each session

    def replica_for(self, body: bytes, loads: Mapping[str, ReplicaLoad]) -> str:
        """Returns the replica for a request, and counts the request there; `loads` is not empty."""
        self._learn_cache_tokens(loads)
        for gone in self._open_requests.keys() - loads.keys():
            self._forget(gone)
        for name, load in loads.items():
            self._settle(name, load)
        keys = make_body_keys(body)
        if keys is not None:
            self._end_turn_before(keys)
        replica = self._policy.choose(keys, list(loads))[0]
        request = _OpenRequest(self._policy.routed(keys, replica), self._clock())
        self._open_requests[replica].append(request)
        if keys is not None:
            self._last_turns[keys.session] = request
        return replica

    def _learn_cache_tokens(self, loads: Mapping[str, ReplicaLoad]) -> None:
        """Starts a policy with the cache size of the first report, as the replicas are similar."""
        told = min((load.cache_tokens for load in loads.values() if load.cache_tokens), default=0)
        if told and not self._cache_tokens:
            self._cache_tokens = told
            self._policy = PrefixPolicy(cache_tokens=told, clock=self._clock)
            self._open_requests.clear()
            self._last_turns.clear()

    def _forget(self, replica: str) -> None:
        self._policy.forget(replica)
        for request in self._open_requests.pop(replica):
            self._drop_turn(request)

    def _settle(self, replica: str, load: ReplicaLoad) -> None:
        requests = self._open_requests.setdefault(replica, deque())
        reported_s = self._clock() - MAX_REPORT_DELAY_S
        num_young = sum(
            1
            for _ in itertools.takewhile(
                lambda each: each.sent_at_s > reported_s, reversed(requests)
            )
        )
        for _ in range(len(requests) - num_young - load.num_unfinished):
            self._end(requests[0])
        for _ in range(load.num_unfinished - len(requests)):
            requests.appendleft(_OpenRequest(self._policy.routed(None, replica), reported_s))
        for each in itertools.islice(
            requests, max(0, len(requests) - num_young - load.num_waiting)
        ):
            if not each.has_begun:
                self._policy.first_token(each.ticket)
                each.has_begun = True

    def _end_turn_before(self, keys: RequestKeys) -> None:
        before = self._last_turns.get(keys.session)
        if before is None or before.ticket.keys is None:
            return
        if keys.is_continued or keys.num_tokens > before.ticket.keys.num_tokens:
            self._end(before)

    def _end(self, request: _OpenRequest) -> None:
        self._open_requests[request.ticket.replica].remove(request)
        self._policy.ended(request.ticket)
        self._drop_turn(request)

    def _drop_turn(self, request: _OpenRequest) -> None:
        keys = request.ticket.keys
        if keys is not None and self._last_turns.get(keys.session) is request:
            del self._last_turns[keys.session]
