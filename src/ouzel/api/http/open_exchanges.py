"""Lists the requests in progress, so that a stopping server can log them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ouzel.api.http.exchange import Exchange


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request whose answer is not complete."""

    request_id: str
    endpoint: str
    arrival_s: float  # seconds on the clock of time.perf_counter()
    num_tokens: int  # tokens generated so far

    def __str__(self) -> str:
        age_s = time.perf_counter() - self.arrival_s
        return (
            f"{self.request_id} {self.endpoint} since {age_s:.1f} s with {self.num_tokens} tokens"
        )


class OpenExchanges:
    def __init__(self) -> None:
        self._endpoints: dict[int, tuple[Exchange, str]] = {}

    @contextmanager
    def track(self, exchange: Exchange, endpoint: str) -> Iterator[None]:
        """Lists the exchange while the block runs. `endpoint` is percent-encoded."""
        self._endpoints[id(exchange)] = (exchange, endpoint)
        try:
            yield
        finally:
            del self._endpoints[id(exchange)]

    def requests(self) -> list[OpenRequest]:
        """Returns the open requests, except probes, scrapes and files of the playground."""
        return [
            OpenRequest(exchange.request_id, endpoint, exchange.arrival_s, _num_tokens(exchange))
            for exchange, endpoint in self._endpoints.values()
            if not exchange.is_routine
        ]


def _num_tokens(exchange: Exchange) -> int:
    return 0 if exchange.generation is None else exchange.generation.usage().completion_tokens
