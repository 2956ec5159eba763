"""One HTTP request as ASGI shows it has a record in its scope, which becomes its line in the log."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from typing import Protocol

from starlette.types import Scope

from ouzel.api.http.faults import ErrorStyle
from ouzel.api.http.framing import SSE, Framing
from ouzel.api.http.refusal_reason import RefusalReason
from ouzel.generation import Generation, SeveralGenerations, Usage

_SCOPE_KEY = "ouzel.exchange"
CLIENT_CLOSED_REQUEST = 499  # nginx's number for it; only ever in the log


class ClientDisconnected(Exception):
    """Nobody reads the answer any more."""


class Followed(Protocol):
    """The log line tells this of what was made."""

    model_name: str
    finish_reasons: list[str]

    @property
    def ttft_s(self) -> float | None: ...

    def usage(self) -> Usage: ...


@dataclass(slots=True)
class Exchange:
    """Records what became of one request: the endpoint fills in the generation, the edge writes it all to the log."""

    request_id: str
    arrival_s: float = field(default_factory=time.perf_counter)
    client: str | None = None  # the IP address of the client; None on a unix socket
    key_id: str | None = None  # of the API key, an opaque digest; None where none is asked for
    status: int | None = None  # None until the response has started
    generation: Generation | SeveralGenerations | None = None
    vectors: Followed | None = None  # where no text is made
    body: bytes | None = None  # once it has been read
    framing: Framing = SSE  # of the stream, once it has begun
    envelope: Callable[[bytes], bytes] | None = None  # wraps each piece of the stream
    # set once an endpoint with several styles knows its client
    error_style: ErrorStyle | None = None
    route: str = ""  # as its path is spelled in the table of operations, once it is found there
    # a probe, a scrape or a file of the playground: people and machines ask for many
    is_routine: bool = False
    refusal: RefusalReason | None = None  # also of one that has begun to be answered

    def follow(self, generation: Generation | SeveralGenerations, *, has_head: bool = True) -> None:
        """Takes the generation that the log line tells of; of several, one after the other, the last.

        Its warnings and dropped formats go into the head of the answer, if the answer has one.
        """
        self.generation = generation
        generation.can_tell_of_dropped = lambda: has_head and self.status is None


def open_exchange(scope: Scope, request_id: str) -> Exchange:
    exchange = Exchange(request_id, client=_client_address(scope))
    scope[_SCOPE_KEY] = exchange
    return exchange


def _client_address(scope: Scope) -> str | None:
    """Returns the address of the socket, or the address in `X-Forwarded-For` if uvicorn trusts the proxy.

    A proxy passes on text that a client may have written: text that is no address is left out of the log. So is the
    zone of an IPv6 address (`%eth0`), for which Python accepts any text.
    """
    client = scope.get("client")
    return None if client is None else _address(client[0])


@lru_cache(1024)
def _address(text: str) -> str:
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return "invalid"


def exchange_of(scope: Scope) -> Exchange:
    exchange = scope[_SCOPE_KEY]
    assert isinstance(exchange, Exchange)
    return exchange


def method_of(scope: Scope) -> str:
    """A WebSocket begins as a GET."""
    method: str = scope.get("method", "GET")
    return method


def header(scope: Scope, name: bytes) -> str | None:
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return None
