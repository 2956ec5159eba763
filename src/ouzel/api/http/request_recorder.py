"""Gives each request its id, logs it in one line and counts its response: the outermost layer."""

import re
import secrets
from collections.abc import Callable, Iterable
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ouzel.api.http.exchange import Exchange, get_header, get_method, open_exchange
from ouzel.api.http.open_exchanges import OpenExchanges
from ouzel.api.http.paths import Paths
from ouzel.api.http.request_log import log_exchange
from ouzel.api.http.request_span import end_request_span
from ouzel.observability import Span, request_id_in_scope, span_in_scope

_REQUEST_ID_HEADERS = (b"x-request-id", b"x-amzn-sagemaker-inference-id")
# headers of answers: OpenAI's name and Anthropic's name
_ID_HEADERS = (b"x-request-id", b"request-id")
WARNINGS_HEADER = "x-ouzel-warnings"
DROPPED_FORMAT_HEADER = "x-ouzel-format-ignored"
_MAX_WARNINGS_LEN = 4000  # proxies refuse answers with long headers
_MAX_REASON_LEN = 500
_NOT_PRINTABLE_ASCII = re.compile(r"[^ -~]")
# takes the headers and the time of arrival
BeginSpan = Callable[[Iterable[tuple[bytes, bytes]], float], Span]
_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


# takes the path's template (empty for an unknown path) and the status
CountResponse = Callable[[str, int], None]


class RequestRecorder:
    def __init__(
        self,
        app: ASGIApp,
        paths: Paths,
        count_response: CountResponse,
        begin_span: BeginSpan | None = None,
        open_exchanges: OpenExchanges | None = None,
    ) -> None:
        """Without `begin_span` requests are not traced."""
        self._app = app
        self._paths = paths
        self._count_response = count_response
        self._open_exchanges = open_exchanges or OpenExchanges()
        self._begin_span = begin_span

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = open_exchange(scope, _request_id(scope))
        own_id = exchange.request_id.encode()
        request_id_in_scope.set(exchange.request_id)  # each request runs in a context of its own
        span = None
        if self._begin_span is not None:
            span = self._begin_span(scope["headers"], exchange.arrival_s)
            span_in_scope.set(span)

        async def send_with_id(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept"):
                exchange.status = message.get("status", HTTPStatus.SWITCHING_PROTOCOLS.value)
                message["headers"] = [
                    *message.get("headers", ()),
                    *((name, own_id) for name in _ID_HEADERS),
                    *_warning_headers(exchange),
                ]
            await send(message)

        method, path = get_method(scope), scope["raw_path"].decode("latin-1")
        # the messages of a WebSocket are requests; the connection is not
        if scope["type"] == "websocket":
            await self._app(scope, receive, send_with_id)
        else:
            with self._open_exchanges.track(exchange, f"{method} {path}"):
                await self._app(scope, receive, send_with_id)
        log_exchange(exchange, method, path)
        if exchange.status is not None:
            # Without a route the request ended before the router, for example for lack of a key.
            self._count_response(
                exchange.route or self._paths.template(scope["path"]), exchange.status
            )
        if span is not None:
            end_request_span(span, exchange, scope)


def _warning_headers(exchange: Exchange) -> Iterable[tuple[bytes, bytes]]:
    """Yields a header with the warnings of the generation, and one with the ignored formats."""
    if exchange.generation is None:
        return
    for name, texts, max_len in (
        (WARNINGS_HEADER, exchange.generation.request.warnings, _MAX_WARNINGS_LEN),
        (DROPPED_FORMAT_HEADER, exchange.generation.dropped_formats, _MAX_REASON_LEN),
    ):
        text = _as_printable_ascii("; ".join(texts))[:max_len]
        if text:
            yield name.encode(), text.encode("ascii")


def _as_printable_ascii(text: str) -> str:
    """Escapes other characters as Python does: HTTP servers refuse control characters."""
    return _NOT_PRINTABLE_ASCII.sub(
        lambda match: match[0].encode("unicode_escape").decode("ascii"), text
    )


def _request_id(scope: Scope) -> str:
    sent_id = next(
        (value for name in _REQUEST_ID_HEADERS if (value := get_header(scope, name)) is not None),
        "",
    )
    return sent_id if _SANE_REQUEST_ID.fullmatch(sent_id) else secrets.token_hex(16)
