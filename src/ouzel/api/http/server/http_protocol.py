"""uvicorn's HTTP is made safe here from clients that read nothing, never finish, or send what is no HTTP.

A connection waits for its client in one of the states of `connections.py`, or it has a request that is being answered.
What cannot be read is answered by the application, through `refusal.py`; after that the connection is closed, and
nothing more of it is used.

Reading goes on while requests wait for the answers to earlier ones of their connection: else it would not be seen that
the client has left. So what they may send is bounded.
"""

import asyncio

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ouzel.api.http.refusal import refuse, unread_scope
from ouzel.api.http.server.connections import Connections, Wait
from ouzel.api.http.server.handshake import check_handshake
from ouzel.api.http.server.last_words import LastWords, last_cycle
from ouzel.api.http.server.upgrade_offer import head_without_offer
from ouzel.api.http.server.write_watch import WriteWatch
from ouzel.config import LimitsConfig
from ouzel.errors import (
    HeadTimeout,
    HeadTooLarge,
    InvalidRequest,
    OuzelError,
    Overloaded,
    TooManyConnections,
)

MAX_HEAD_BYTES = 2**16
MAX_HEADERS = 100
MAX_PIPELINED = 16  # requests that wait for the answers to earlier ones of their connection
MAX_PIPELINED_BYTES = 2**18  # of their bodies
MAX_BODY_PIECE = 2**15  # as many bytes as the application is given at a time, but of the last piece
_RETRY_AFTER_S = 1.0


class HttpProtocol(HttpToolsProtocol):
    write_timeout_s: float
    header_timeout_s: float
    body_piece_bytes: int
    shared: Connections
    _write_watch: WriteWatch
    _wait: Wait | None = None
    # the one whose answer is being made; `cycle` has come last
    _answered: RequestResponseCycle | None = None
    _is_in_head = False
    _has_offer = False  # of another protocol, in the head that has just been read
    _ignores_input = False  # what comes is dropped
    _num_head_bytes = 0  # of an unfinished head, as far as is known
    _num_fed = 0  # bytes that came last
    _begins_with_head = False  # what came last
    # of a body, since the last piece of its content: lengths of chunks, extensions, trailers
    _num_framing_bytes = 0

    # What comes

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's is as narrow
        super().connection_made(transport)
        self._write_watch = WriteWatch(transport, self.write_timeout_s)
        self._wait_for(Wait.HEAD)

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            return
        self._num_fed = len(data)
        self._begins_with_head = not self._is_in_head and (
            self.cycle is None or not self.cycle.more_body
        )
        if self._is_in_head:
            self._num_head_bytes += len(data)
        self._num_framing_bytes += len(data)
        self._feed(data)
        if not self._ignores_input:
            self._check_unfinished()
            if self.pipeline:
                self.flow.resume_reading()
                self._check_pipelined()
        self._wait_for(self._what_is_missing())

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._has_offer:
                self._pass_over_offer(data[upgrade.args[0] :])
            elif not self._ignores_input:
                self._upgrade()
        except httptools.HttpParserError as error:
            self._refuse(InvalidRequest(f"this is no request in HTTP/1.1: {error}"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True
        self._num_head_bytes = self._num_fed if self._begins_with_head else 0
        self._begins_with_head = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:  # what a client says behind its body is dropped
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._num_framing_bytes = 0
        if self._ignores_input:
            return
        fault = self._fault_of_head()
        if fault is None and self.parser.should_upgrade() and not self._should_upgrade():
            self._has_offer = True
        elif fault is None:
            super().on_headers_complete()
        else:
            self._refuse(fault)

    def on_body(self, body: bytes) -> None:
        """Keeps small pieces together, so that who trickles wakes nobody up."""
        self._num_framing_bytes = 0
        if self._ignores_input or self.cycle.response_complete:
            return
        if len(self.cycle.body) + len(body) < self.body_piece_bytes:
            self.cycle.body += body  # `on_message_complete` wakes the application up at the latest
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._ignores_input or self._has_offer:
            return
        if self.cycle is not None:
            self.cycle.more_body = False  # also of one that has been answered before it was read
        super().on_message_complete()

    def _fault_of_head(self) -> OuzelError | None:
        if self.parser.get_method() == b"CONNECT":
            return InvalidRequest("this is no request in HTTP/1.1: CONNECT is for proxies")
        if len(self.headers) > MAX_HEADERS:
            return HeadTooLarge(
                f"a request must have <= {MAX_HEADERS} headers, given {len(self.headers)}"
            )
        if self._num_head_bytes + self._num_fed > MAX_HEAD_BYTES:  # at most so much
            num_bytes = len(self.url) + sum(
                len(name) + len(value) + 4 for name, value in self.headers
            )
            if num_bytes > MAX_HEAD_BYTES:
                return _head_too_large()
        if len(self.pipeline) >= MAX_PIPELINED:
            limit = f"{MAX_PIPELINED} requests of this connection wait for their turn, which is the limit"
            return Overloaded(limit, retry_after_s=_RETRY_AFTER_S)
        if self._wait is not None and self.shared.is_busy:
            limit = f"max_connections is {self.shared.max_connections}"
            return TooManyConnections(
                f"too many connections have requests: {limit}", retry_after_s=_RETRY_AFTER_S
            )
        return None

    def _check_unfinished(self) -> None:
        if not self._is_in_head:
            if (
                self._num_framing_bytes > MAX_HEAD_BYTES
                and self.cycle is not None
                and self.cycle.more_body
            ):
                limit = f"<= {MAX_HEAD_BYTES} bytes long together"
                self._refuse(
                    HeadTooLarge(
                        f"a body's trailers, and what its chunks have besides data, must be {limit}"
                    )
                )
        elif self._num_head_bytes > MAX_HEAD_BYTES:
            self._refuse(_head_too_large())
        elif len(self.headers) > MAX_HEADERS:
            self._refuse(HeadTooLarge(f"a request must have <= {MAX_HEADERS} headers, given more"))

    def _check_pipelined(self) -> None:
        if sum(len(cycle.body) for cycle, _ in self.pipeline) > MAX_PIPELINED_BYTES:
            limit = f"bodies must be <= {MAX_PIPELINED_BYTES} bytes long together"
            complaint = f"while requests wait for answers to earlier ones of their connection, their {limit}"
            self._refuse(Overloaded(complaint, retry_after_s=_RETRY_AFTER_S))

    def _pass_over_offer(self, rest: bytes) -> None:
        self._has_offer = False
        head = head_without_offer(
            self.parser.get_method(), self.url, self.parser.get_http_version(), self.headers
        )
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's
        self._feed(head + rest)

    def _upgrade(self) -> None:
        """To a WebSocket."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._refuse(
                InvalidRequest(
                    "a WebSocket cannot begin before earlier requests have been answered"
                )
            )
        else:
            try:
                check_handshake(self.scope["method"].encode(), self.url, self.headers)
            except InvalidRequest as error:
                self._refuse(error)
            else:
                self._ignores_input, self.cycle = True, None  # type: ignore[assignment]  # as uvicorn does before the first
                self._write_watch.end()  # the WebSocket's pings tell whether anybody reads
                self.handle_websocket_upgrade()

    def _refuse(self, error: OuzelError) -> None:
        """Answers with the error after all that has been asked before, and closes."""
        self._ignores_input = True
        self.flow.resume_reading()
        cycle = self.cycle
        if cycle is not None and cycle.more_body and not self._is_in_head:  # its body is at fault
            if cycle.response_complete:
                self.transport.close()
            refuse(cycle.scope, error)  # type: ignore[arg-type]  # a dictionary of the request's own
            cycle.transport = self._last_words()
            cycle.more_body = cycle.keep_alive = False
            cycle.message_event.set()
            return
        scope = unread_scope(self)
        refuse(scope, error)
        self.cycle = last_cycle(self, scope, self._last_words())
        if cycle is None or cycle.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.pipeline.appendleft((self.cycle, self.app))

    def _last_words(self) -> asyncio.Transport:
        return LastWords(self.transport, self.flow)  # type: ignore[return-value]  # as much of one as an answer uses

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    # Waiting

    def _what_is_missing(self) -> Wait | None:
        cycle = self.cycle
        if self._ignores_input:
            return Wait.LEAVING if cycle is not None and cycle.response_complete else None
        if cycle is None or (cycle.response_complete and (self._is_in_head or cycle.more_body)):
            return Wait.HEAD
        if cycle.response_complete:
            return Wait.IDLE
        return Wait.BODY if cycle.more_body and not self.pipeline else None

    def _wait_for(self, wait: Wait | None) -> None:
        if wait is not self._wait:
            self.shared.move(self, self._wait, wait)
            self._wait = wait

    def on_response_complete(self) -> None:
        """Goes on with the next request. Its own timer for idle connections is what uvicorn would do besides."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            is_unread = self.transport.get_write_buffer_size() > 0
            if is_unread:
                self._write_watch.begin()
            self._wait_for(Wait.ANSWER if is_unread else None)
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        self._wait_for(self._what_is_missing())

    def wait_is_over(self) -> None:
        """The client has had its time."""
        self._wait = None
        if self._is_in_head:
            self._refuse(
                HeadTimeout(f"the request's head must arrive within {self.header_timeout_s:g} s")
            )
        else:
            self.close_for_newcomer()

    def close_for_newcomer(self) -> None:
        """Closes at once: an ordinary close waits for a client that has not read its answer."""
        self._wait_for(None)
        self.transport.abort()

    # What goes

    def pause_writing(self) -> None:
        """More waits to be sent than the transport likes to hold."""
        super().pause_writing()
        self._write_watch.begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._write_watch.end()

    def shutdown(self) -> None:
        """The server stops: requests that have not arrived are no longer waited for."""
        if self._wait is Wait.BODY and not self.cycle.response_started:
            self.close_for_newcomer()
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()
        self.pipeline.clear()
        self._wait_for(None)
        self._write_watch.end()


def _head_too_large() -> HeadTooLarge:
    return HeadTooLarge(
        f"the request line and the headers must be <= {MAX_HEAD_BYTES} bytes long together"
    )


def http_protocol(connections: Connections, limits: LimitsConfig) -> type[HttpProtocol]:
    """Returns a class that has what all connections share, for uvicorn takes a class and makes its objects."""
    shared = {
        "shared": connections,
        "write_timeout_s": limits.write_timeout_s,
        "header_timeout_s": limits.header_timeout_s,
        "body_piece_bytes": min(limits.max_body_bytes, MAX_BODY_PIECE),
    }
    return type("HttpProtocol", (HttpProtocol,), shared)
