"""Limits the total bytes of request bodies that are held in memory.

The first bytes of each body are free, so that long bodies cannot keep short ones out. There are at
most as many free shares as connections.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ouzel.errors import Overloaded

# bytes of each body that do not count
FREE_BYTES = 2**16
_RETRY_AFTER_S = 1.0


class BodyBudget:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0

    @contextmanager
    def share(self) -> Iterator["Share"]:
        """Opens a share for one body, and returns its bytes to the budget at the end."""
        share = Share(self)
        try:
            yield share
        finally:
            self.give_back(share.num_bytes)

    def take(self, num_bytes: int) -> None:
        self.check(num_bytes)
        self._num_bytes += num_bytes

    def give_back(self, num_bytes: int) -> None:
        self._num_bytes -= num_bytes

    def check(self, num_bytes: int) -> None:
        """Raises Overloaded if the budget lacks room for `num_bytes`."""
        if num_bytes > self._max_bytes - self._num_bytes:
            limit = f"max_body_bytes_total is {self._max_bytes}, {self._num_bytes} of them in use"
            raise Overloaded(
                f"too many bytes of request bodies in memory: {limit}", retry_after_s=_RETRY_AFTER_S
            )


class Share:
    """Counts the bytes of one body, or of all unanswered messages of a WebSocket."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.num_bytes = 0

    def expect(self, body_bytes: int) -> None:
        """Raises Overloaded if a body of this length does not fit now. Reserves nothing."""
        self._budget.check(max(body_bytes - FREE_BYTES, 0))

    def grow_to(self, body_bytes: int) -> None:
        """Takes bytes for a body that has grown. Raises Overloaded if they do not fit."""
        more = max(body_bytes - FREE_BYTES, 0) - self.num_bytes
        if more > 0:
            self._budget.take(more)
            self.num_bytes += more

    def shrink_to(self, body_bytes: int) -> None:
        less = self.num_bytes - max(body_bytes - FREE_BYTES, 0)
        if less > 0:
            self._budget.give_back(less)
            self.num_bytes -= less
