"""A routing policy says which replica a request goes to, and is told what becomes of it."""

import itertools
from collections.abc import Sequence
from typing import Protocol

import msgspec

from ouzel.routing.keys import RequestKeys


class Ticket(msgspec.Struct, frozen=True):
    """A policy knows a request by it that was given to a replica."""

    number: int
    replica: str
    num_tokens: int = 0  # of the prompt, that the replica is expected to compute
    keys: RequestKeys | None = None


class RoutingPolicy(Protocol):
    """Replicas are names. `ended` comes once for each `routed`, `first_token` before it or not at all."""

    def choose(self, keys: RequestKeys | None, candidates: Sequence[str]) -> list[str]:
        """Returns all candidates, the best first. Nothing is noted: that is for `routed`."""
        ...

    def routed(self, keys: RequestKeys | None, replica: str) -> Ticket:
        """Notes that a request was given to a replica."""
        ...

    def first_token(self, ticket: Ticket) -> None:
        """Notes that the request's prompt is computed."""
        ...

    def ended(self, ticket: Ticket, final_keys: RequestKeys | None = None) -> None:
        """Notes that the replica is done with it; the keys are those of prompt and output, where they are known."""
        ...

    def forget(self, replica: str) -> None:
        """Notes that a replica is gone with its cache and its requests, whose tickets mean nothing any more."""
        ...


class LeastConnections:
    """It implements `RoutingPolicy`: the fewest unfinished requests come first, and equal replicas take turns."""

    def __init__(self) -> None:
        self._unfinished: dict[str, set[int]] = {}  # by replica: numbers of tickets
        self._numbers = itertools.count()
        self._last: dict[str, int] = {}  # ticket that a replica got last

    def choose(self, keys: RequestKeys | None, candidates: Sequence[str]) -> list[str]:
        return sorted(
            candidates,
            key=lambda replica: (self.num_unfinished(replica), self._last.get(replica, -1)),
        )

    def routed(self, keys: RequestKeys | None, replica: str) -> Ticket:
        ticket = Ticket(next(self._numbers), replica)
        self._unfinished.setdefault(replica, set()).add(ticket.number)
        self._last[replica] = ticket.number
        return ticket

    def first_token(self, ticket: Ticket) -> None:
        """Changes nothing: a request counts until it ends."""

    def ended(self, ticket: Ticket, final_keys: RequestKeys | None = None) -> None:
        self._unfinished.get(ticket.replica, set()).discard(ticket.number)

    def forget(self, replica: str) -> None:
        self._unfinished.pop(replica, None)
        self._last.pop(replica, None)

    def num_unfinished(self, replica: str) -> int:
        return len(self._unfinished.get(replica, ()))
