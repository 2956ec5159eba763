"""A request has a place from the door to its end, so that those that wait are bounded."""

from collections.abc import Iterator
from contextlib import contextmanager

from ouzel.errors import Overloaded


class Admission:
    def __init__(self) -> None:
        self.num_admitted = 0

    @contextmanager
    def places(self, num_requests: int, *, of: int) -> Iterator[None]:
        """Holds so many places `of` all that there are, while the block runs. Raises Overloaded for too few."""
        if self.num_admitted + num_requests > of:
            there_are = f"{self.num_admitted} requests run or wait, the limit is {of}"
            raise Overloaded(f"the server is full for {num_requests} more: {there_are}", retry_after_s=1.0)
        self.num_admitted += num_requests
        try:
            yield
        finally:
            self.num_admitted -= num_requests
