"""Declares the interface of routing policies, and implements the simplest policy."""

import itertools
from collections.abc import Sequence
from typing import Protocol

import msgspec

from ouzel.routing.keys import RequestKeys


class Ticket(msgspec.Struct, frozen=True):
    """Identifies a request that a policy has routed."""

    number: int
    replica: str
    num_tokens: int = 0  # prompt tokens that the replica is expected to compute
    keys: RequestKeys | None = None


class RoutingPolicy(Protocol):
    """Orders replicas, which are names, for a request.

    Each `routed` is followed by one `ended`, with at most one `first_token` before it.
    """

    def choose(self, keys: RequestKeys | None, candidates: Sequence[str]) -> list[str]:
        """Returns all candidates, the best first. Records nothing: `routed` does."""
        ...

    def routed(self, keys: RequestKeys | None, replica: str) -> Ticket:
        """Records that a request was sent to a replica."""
        ...

    def first_token(self, ticket: Ticket) -> None:
        """Records that the request's prompt has been computed."""
        ...

    def ended(self, ticket: Ticket, final_keys: RequestKeys | None = None) -> None:
        """Records the end of a request; `final_keys`, if known, cover prompt and output."""
        ...

    def forget(self, replica: str) -> None:
        """Records that a replica is gone, with its cache and requests.

        Their tickets become invalid.
        """
        ...


class LeastConnections:
    """Implements `RoutingPolicy` by the number of unfinished requests.

    Equal replicas take turns.
    """

    def __init__(self) -> None:
        self._unfinished: dict[str, set[int]] = {}  # ticket numbers by replica
        self._numbers = itertools.count()
        self._last: dict[str, int] = {}  # last ticket number by replica

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
