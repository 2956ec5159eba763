"""Records each HTTP request in its ASGI scope. The record becomes the request's log line."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from typing import Protocol

from starlette.types import Scope

from ouzel.api.http.faults import ErrorStyle
from ouzel.api.http.framing import SSE, Framing
from ouzel.api.http.received_file import ReceivedFile
from ouzel.api.http.refusal_reason import RefusalReason
from ouzel.generation import AnyGeneration, Usage

_SCOPE_KEY = "ouzel.exchange"
CLIENT_CLOSED_REQUEST = 499  # nginx's status for a client that left; appears only in the log


class ClientDisconnected(Exception):
    """Ends a request whose client has disconnected."""


class LoggedWork(Protocol):
    """Declares the facts about a generation, vectors, a transcription or speech in the log line."""

    model_name: str
    finish_reasons: list[str]

    @property
    def ttft_s(self) -> float | None: ...

    def usage(self) -> Usage: ...


@dataclass(slots=True)
class Exchange:
    """Records the facts of one request.

    The endpoint adds the generation; the edge logs the record.
    """

    request_id: str
    arrival_s: float = field(default_factory=time.perf_counter)
    # the client's IP address; None on a unix socket
    client: str | None = None
    key_id: str | None = None  # opaque digest of the API key; None if the server needs no key
    status: int | None = None  # None until the response has started
    generation: AnyGeneration | None = None
    # set by endpoints that make vectors, scores, transcriptions or speech
    other_work: LoggedWork | None = None
    audio_s: float | None = None  # duration of the sound that a request reads or makes
    body: bytes | None = None  # set after the body has been read
    file: ReceivedFile | None = None  # the file of a form, whose fields are the body
    framing: Framing = SSE  # framing of the stream, set when the stream begins
    envelope: Callable[[bytes], bytes] | None = None  # wraps each piece of the stream
    # set when an endpoint with several styles knows its client
    error_style: ErrorStyle | None = None
    # path template in the table of operations, set by the router
    route: str = ""
    # a probe, a scrape or a file of the playground: such requests are frequent
    is_routine: bool = False
    # set for refused requests, also if the answer had started
    refusal: RefusalReason | None = None

    def log_generation(self, generation: AnyGeneration, *, has_head: bool = True) -> None:
        """Sets the generation for the log line; a later generation replaces it.

        Its warnings and dropped formats go into the headers of the answer if `has_head`.
        """
        self.generation = generation
        generation.can_tell_of_dropped = lambda: has_head and self.status is None


def open_exchange(scope: Scope, request_id: str) -> Exchange:
    exchange = Exchange(request_id, client=_client_address(scope))
    scope[_SCOPE_KEY] = exchange
    return exchange


def _client_address(scope: Scope) -> str | None:
    """Returns the address of the socket, or the address in `X-Forwarded-For` from a trusted proxy.

    A proxy may pass on text that a client wrote. Text that is not an address stays out of the log,
    and so does the zone of an IPv6 address (`%eth0`), for which Python accepts any text.
    """
    client = scope.get("client")
    return None if client is None else _address(client[0])


@lru_cache(1024)
def _address(text: str) -> str:
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return "invalid"


def get_exchange(scope: Scope) -> Exchange:
    exchange = scope[_SCOPE_KEY]
    assert isinstance(exchange, Exchange)
    return exchange


def get_method(scope: Scope) -> str:
    """Returns the request's method. A WebSocket begins as a GET."""
    method: str = scope.get("method", "GET")
    return method


def get_header(scope: Scope, name: bytes) -> str | None:
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return None
