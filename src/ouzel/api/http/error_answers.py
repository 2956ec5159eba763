"""Answers every exception, in the one broad `except` of the HTTP side."""

import logging
from collections.abc import Mapping

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.exchange import (
    CLIENT_CLOSED_REQUEST,
    ClientDisconnected,
    get_exchange,
    get_header,
)
from ouzel.api.http.faults import ErrorStyle, make_fault, openai_style
from ouzel.api.http.refusal import raise_refusal
from ouzel.api.http.refusal_reason import make_refusal_reason
from ouzel.api.http.send import send_json
from ouzel.errors import STOPS, OuzelError

logger = logging.getLogger(__name__)


class ErrorAnswers:
    def __init__(
        self,
        app: ASGIApp,
        error_styles: Mapping[str, ErrorStyle],
        styles_by_header: Mapping[bytes, ErrorStyle] = {},
    ) -> None:
        """`error_styles` maps prefixes of paths to styles; the first match counts.

        A prefix is whole segments, or any first characters if it ends with a slash. Other paths get
        OpenAI's style. A header that only one kind of client sends overrides the path. A style that
        the endpoint set for the request overrides both.
        """
        self._app = app
        self._error_styles = error_styles
        self._styles_by_header = styles_by_header

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # starlette's router raises its 405 only if this is set
        try:
            raise_refusal(scope)
            await self._app(scope, receive, send)
        except ClientDisconnected:
            get_exchange(scope).status = CLIENT_CLOSED_REQUEST
        except STOPS:
            raise
        except BaseException as error:
            await self._send_error(error, scope, send)

    async def _send_error(self, error: BaseException, scope: Scope, send: Send) -> None:
        """Sends an error response, or an error frame if the answer has started.

        Only streams can fail after their start. A file has no error frames: its answer stays
        incomplete, and the server closes the connection without the end of the transfer.
        """
        if not isinstance(error, OuzelError):
            logger.error("unexpected error", exc_info=error)
        exchange = get_exchange(scope)
        fault = make_fault(error)
        exchange.refusal = make_refusal_reason(error)
        style = exchange.error_style or self._error_style(scope)
        answer = style(msgspec.structs.replace(fault, request_id=exchange.request_id))
        if exchange.status is None:
            await send_json(
                msgspec.json.encode(answer.body), send, status=answer.status, headers=fault.headers
            )
        else:
            exchange.status = answer.status  # logged only: the client has received 200
            if not exchange.framing.has_errors:
                return
            piece = exchange.framing.frames([answer.body])
            await send(
                {
                    "type": "http.response.body",
                    "body": exchange.envelope(piece) if exchange.envelope else piece,
                }
            )

    def _error_style(self, scope: Scope) -> ErrorStyle:
        of_client = [
            style
            for name, style in self._styles_by_header.items()
            if get_header(scope, name) is not None
        ]
        of_path = [
            style
            for prefix, style in self._error_styles.items()
            if _is_below(scope["path"], prefix)
        ]
        return next(iter(of_client + of_path), openai_style)


def _is_below(path: str, prefix: str) -> bool:
    segments = prefix if prefix.endswith("/") else f"{prefix}/"
    return not prefix or f"{path}/".startswith(segments)
