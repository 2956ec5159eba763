"""Bodies are held while they are read and answered; together they have a budget of bytes.

The first bytes of each are free: there are no more of those than connections, so that no long body can keep a short one
out.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ouzel.errors import Overloaded

FREE_BYTES = 2**16  # of each body
_RETRY_AFTER_S = 1.0


class BodyBudget:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0

    @contextmanager
    def share(self) -> Iterator["Share"]:
        """Gives back at the end what one body has taken."""
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
        """Raises Overloaded where there is no room for so many bytes."""
        if num_bytes > self._max_bytes - self._num_bytes:
            limit = (
                f"max_body_bytes_total is {self._max_bytes}, of which {self._num_bytes} are taken"
            )
            raise Overloaded(
                f"too many bytes of request bodies are held: {limit}", retry_after_s=_RETRY_AFTER_S
            )


class Share:
    """One body's part of the budget, or that of all messages that a WebSocket's client waits for the answers to."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.num_bytes = 0

    def expect(self, body_bytes: int) -> None:
        """Raises Overloaded at once where a body of that length could not be held. Nothing is kept for it."""
        self._budget.check(max(body_bytes - FREE_BYTES, 0))

    def grow_to(self, body_bytes: int) -> None:
        """Raises Overloaded where the body cannot be held any more."""
        more = max(body_bytes - FREE_BYTES, 0) - self.num_bytes
        if more > 0:
            self._budget.take(more)
            self.num_bytes += more

    def shrink_to(self, body_bytes: int) -> None:
        less = self.num_bytes - max(body_bytes - FREE_BYTES, 0)
        if less > 0:
            self._budget.give_back(less)
            self.num_bytes -= less
