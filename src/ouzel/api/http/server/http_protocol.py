"""Makes uvicorn's HTTP safe from clients that do not read, never finish, or send no HTTP.

Rules
1. A connection waits for its client in one of the states of `connections.py`, or it has a request
   in progress.
2. Errors of the protocol are answered by the application, through `refusal.py`. Then the connection
   is closed, and its further input is dropped.
3. Reading goes on while requests wait for answers to earlier requests of their connection: else a
   disconnect would go unnoticed. So pipelined bytes are limited.
"""

import asyncio

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ouzel.api.http.errors import HeadTimeout, HeadTooLarge, TooManyConnections
from ouzel.api.http.refusal import make_unread_scope, refuse
from ouzel.api.http.server.connections import Connections, Wait
from ouzel.api.http.server.delayed_close import DelayedClose, make_last_cycle
from ouzel.api.http.server.handshake import check_handshake
from ouzel.api.http.server.upgrade_offer import write_head
from ouzel.api.http.server.write_watch import WriteWatch
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest, OuzelError, Overloaded

MAX_HEAD_BYTES = 2**16
MAX_HEADERS = 100
# requests that wait for the answers to earlier requests of their connection
MAX_PIPELINED = 16
MAX_PIPELINED_BYTES = 2**18  # total bytes of the bodies of these requests
# most bytes that the application receives at a time, except for the last piece
MAX_BODY_PIECE = 2**15
_RETRY_AFTER_S = 1.0


class HttpProtocol(HttpToolsProtocol):
    write_timeout_s: float
    header_timeout_s: float
    body_piece_bytes: int
    shared: Connections
    _write_watch: WriteWatch
    _wait: Wait | None = None
    # the request in progress; `cycle` is the request that was read last
    _answered: RequestResponseCycle | None = None
    _is_in_head = False
    _has_offer = False  # the last head offered another protocol
    _ignores_input = False  # further input is dropped
    _num_head_bytes = 0  # bytes known to belong to the unfinished head
    _num_fed = 0  # bytes of the newest input
    _begins_with_head = False  # the newest input begins with a head
    # bytes of a body since its last content: lengths of chunks, extensions, trailers
    _num_framing_bytes = 0

    # Input

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
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
        self._wait_for(self._find_wait())

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._has_offer:
                self._ignore_offer(data[upgrade.args[0] :])
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
        if self._is_in_head:  # trailers after a body are dropped
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._num_framing_bytes = 0
        if self._ignores_input:
            return
        fault = self._check_head()
        if fault is None and self.parser.should_upgrade() and not self._should_upgrade():
            self._has_offer = True
        elif fault is None:
            super().on_headers_complete()
        else:
            self._refuse(fault)

    def on_body(self, body: bytes) -> None:
        """Collects small pieces: a client that sends single bytes does not wake the application."""
        self._num_framing_bytes = 0
        if self._ignores_input or self.cycle.response_complete:
            return
        if len(self.cycle.body) + len(body) < self.body_piece_bytes:
            # `on_message_complete` wakes the application at the end
            self.cycle.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._ignores_input or self._has_offer:
            return
        if self.cycle is not None:
            self.cycle.more_body = False  # also for a request that was answered before it was read
        super().on_message_complete()

    def _check_head(self) -> OuzelError | None:
        if self.parser.get_method() == b"CONNECT":
            return InvalidRequest("this is no request in HTTP/1.1: CONNECT is for proxies")
        if len(self.headers) > MAX_HEADERS:
            return HeadTooLarge(
                f"a request must have <= {MAX_HEADERS} headers, given {len(self.headers)}"
            )
        # an upper bound of the head's length
        if self._num_head_bytes + self._num_fed > MAX_HEAD_BYTES:
            num_bytes = len(self.url) + sum(
                len(name) + len(value) + 4 for name, value in self.headers
            )
            if num_bytes > MAX_HEAD_BYTES:
                return _head_too_large()
        if len(self.pipeline) >= MAX_PIPELINED:
            limit = f"{MAX_PIPELINED} requests of this connection wait already, the most allowed"
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
                        f"the trailers of a body and the framing of its chunks must be {limit}"
                    )
                )
        elif self._num_head_bytes > MAX_HEAD_BYTES:
            self._refuse(_head_too_large())
        elif len(self.headers) > MAX_HEADERS:
            self._refuse(HeadTooLarge(f"a request must have <= {MAX_HEADERS} headers, given more"))

    def _check_pipelined(self) -> None:
        if sum(len(cycle.body) for cycle, _ in self.pipeline) > MAX_PIPELINED_BYTES:
            message = (
                "while requests wait for answers to earlier requests of their connection, "
                f"their bodies must be <= {MAX_PIPELINED_BYTES} bytes long together"
            )
            self._refuse(Overloaded(message, retry_after_s=_RETRY_AFTER_S))

    def _ignore_offer(self, rest: bytes) -> None:
        self._has_offer = False
        head = write_head(
            self.parser.get_method(), self.url, self.parser.get_http_version(), self.headers
        )
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # a setting of uvicorn
        self._feed(head + rest)

    def _upgrade(self) -> None:
        """Turns the connection into a WebSocket."""
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
                # uvicorn expects no cycle before the first request
                self._ignores_input, self.cycle = True, None  # type: ignore[assignment]
                self._write_watch.end()  # the WebSocket's pings notice a client that does not read
                self.handle_websocket_upgrade()

    def _refuse(self, error: OuzelError) -> None:
        """Answers earlier requests, then this one with the error, and closes the connection."""
        self._ignores_input = True
        self.flow.resume_reading()
        cycle = self.cycle
        # The body of the newest request is at fault.
        if cycle is not None and cycle.more_body and not self._is_in_head:
            if cycle.response_complete:
                self.transport.close()
            refuse(cycle.scope, error)  # type: ignore[arg-type]
            cycle.transport = self._delay_close()
            cycle.more_body = cycle.keep_alive = False
            cycle.message_event.set()
            return
        scope = make_unread_scope(self)
        refuse(scope, error)
        self.cycle = make_last_cycle(self, scope, self._delay_close())
        if cycle is None or cycle.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.pipeline.appendleft((self.cycle, self.app))

    def _delay_close(self) -> asyncio.Transport:
        # It has as much of a transport as an answer uses.
        return DelayedClose(self.transport, self.flow)  # type: ignore[return-value]

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    # Waiting

    def _find_wait(self) -> Wait | None:
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
        """Starts the next request. uvicorn's method would also start its own idle timer."""
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
        self._wait_for(self._find_wait())

    def end_wait(self) -> None:
        """Ends a connection after its time limit: an unfinished head gets an error."""
        self._wait = None
        if self._is_in_head:
            self._refuse(
                HeadTimeout(f"the request's head must arrive within {self.header_timeout_s:g} s")
            )
        else:
            self.close_for_newcomer()

    def close_for_newcomer(self) -> None:
        """Closes at once. An ordinary close would wait for the client to read its answer."""
        self._wait_for(None)
        self.transport.abort()

    # Output

    def pause_writing(self) -> None:
        """Starts the timer for a client that does not read: the transport's buffer is full."""
        super().pause_writing()
        self._write_watch.begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._write_watch.end()

    def shutdown(self) -> None:
        """Stops waiting for incomplete requests, because the server stops."""
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


def make_protocol_class(connections: Connections, limits: LimitsConfig) -> type[HttpProtocol]:
    """Returns a protocol class for one server. uvicorn takes a class and creates its instances."""
    shared = {
        "shared": connections,
        "write_timeout_s": limits.write_timeout_s,
        "header_timeout_s": limits.header_timeout_s,
        "body_piece_bytes": min(limits.max_body_bytes, MAX_BODY_PIECE),
    }
    return type("HttpProtocol", (HttpProtocol,), shared)
