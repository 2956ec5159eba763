"""`Edge` is around all that answer: it gives a request its id and logs it in one line."""

import re
import secrets
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ouzel.api.http.exchange import header, method_of, open_exchange
from ouzel.api.http.request_log import log_exchange
from ouzel.observability import request_id_in_scope

_REQUEST_ID_HEADERS = (b"x-request-id", b"x-amzn-sagemaker-inference-id")
_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


class Edge:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = open_exchange(scope, _request_id(scope))
        request_id_in_scope.set(exchange.request_id)  # each request runs in a context of its own

        async def send_with_id(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept"):
                exchange.status = message.get("status", HTTPStatus.SWITCHING_PROTOCOLS.value)
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", exchange.request_id.encode())]
            await send(message)

        await self._app(scope, receive, send_with_id)
        log_exchange(exchange, method_of(scope), scope["raw_path"].decode("latin-1"))


def _request_id(scope: Scope) -> str:
    sent_id = next((value for name in _REQUEST_ID_HEADERS if (value := header(scope, name)) is not None), "")
    return sent_id if _SANE_REQUEST_ID.fullmatch(sent_id) else secrets.token_hex(16)
