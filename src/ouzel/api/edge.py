"""The outermost layer: the request id and the one log line per request."""

import logging
import re
import secrets
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ouzel.api.exchange import Exchange, header, open_exchange
from ouzel.observability import request_id_in_scope

logger = logging.getLogger(__name__)

_REQUEST_ID_HEADERS = (b"x-request-id", b"x-amzn-sagemaker-inference-id")
_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


class Edge:
    """An ASGI app around all others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = open_exchange(scope, _request_id(scope))
        request_id_in_scope.set(exchange.request_id)  # each request runs in a context of its own

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", exchange.request_id.encode())]
            await send(message)

        await self._app(scope, receive, send_with_id)
        _log(exchange, scope)


def _request_id(scope: Scope) -> str:
    given = next((value for name in _REQUEST_ID_HEADERS if (value := header(scope, name)) is not None), "")
    return given if _SANE_REQUEST_ID.fullmatch(given) else secrets.token_hex(16)


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
