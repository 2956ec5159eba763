"""The outermost layer: the request id, the answer to every exception, and the one log line per request.

Here is the one broad `except` of the HTTP side.
"""

import logging
import re
import secrets
import time
from collections.abc import Mapping

import msgspec
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ouzel.api.error_objects import ErrorStyle, fault_of, openai_style
from ouzel.api.exchange import ClientDisconnected, Exchange, header, open_exchange
from ouzel.errors import OuzelError
from ouzel.observability import request_id_in_scope

logger = logging.getLogger(__name__)

_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
_CLIENT_CLOSED_REQUEST = 499  # nginx's number for it; only ever in the log


class Edge:
    """An ASGI app around the router."""

    def __init__(self, app: ASGIApp, error_styles: Mapping[str, ErrorStyle]) -> None:
        """`error_styles` by the beginning of the path; OpenAI's elsewhere."""
        self._app = app
        self._error_styles = error_styles

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = open_exchange(scope, _request_id(scope))
        request_id_in_scope.set(exchange.request_id)  # each request runs in a context of its own
        scope["app"] = self  # makes the router raise its 404 and 405

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", exchange.request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnected:
            exchange.status = _CLIENT_CLOSED_REQUEST
        except Exception as error:
            await self._send_error(error, exchange, scope, send_with_id)
        _log(exchange, scope)

    async def _send_error(self, error: Exception, exchange: Exchange, scope: Scope, send: Send) -> None:
        """A response of its own, or one frame when the stream has begun: only streams fail after their start."""
        if not isinstance(error, OuzelError | HTTPException):
            logger.exception("unexpected error")
        fault = fault_of(error, method=scope["method"], path=scope["path"])
        answer = self._error_style(scope["path"])(fault)
        if exchange.status is None:
            body = msgspec.json.encode(answer.body)
            own = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": answer.status, "headers": own + fault.headers})
            await send({"type": "http.response.body", "body": body})
        else:
            exchange.status = answer.status  # for the log: the client has seen 200
            await send({"type": "http.response.body", "body": exchange.framing.frames([answer.body])})

    def _error_style(self, path: str) -> ErrorStyle:
        styles = (style for prefix, style in self._error_styles.items() if path.startswith(prefix))
        return next(styles, openai_style)


def _request_id(scope: Scope) -> str:
    given = header(scope, b"x-request-id")
    return given if given is not None and _SANE_REQUEST_ID.fullmatch(given) else secrets.token_hex(16)


def _log(exchange: Exchange, scope: Scope) -> None:
    if not logger.isEnabledFor(logging.INFO):
        return
    path = scope["raw_path"].decode("latin-1")  # still percent-encoded: no line breaks in the log
    duration_s = time.perf_counter() - exchange.arrival_s
    generation = exchange.generation
    if generation is None:
        logger.info("%s %s %s duration_s=%.4f", scope["method"], path, exchange.status, duration_s)
        return
    usage = generation.usage()
    logger.info(
        "%s %s %s model=%s prompt_tokens=%d completion_tokens=%d ttft_s=%.4f duration_s=%.4f finish=%s",
        *(scope["method"], path, exchange.status, generation.model_name),
        *(usage.prompt_tokens, usage.completion_tokens, generation.ttft_s or 0.0, duration_s),
        ",".join(generation.finish_reasons),
    )
