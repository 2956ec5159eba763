"""Sends JSON answers in one piece."""

from collections.abc import Sequence
from http import HTTPStatus

import msgspec
from starlette.responses import Response
from starlette.types import Send

Headers = Sequence[tuple[bytes, bytes]]


def json_response(value: object, status: int = HTTPStatus.OK) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def send_json(
    encoded: bytes, send: Send, *, status: int = HTTPStatus.OK, headers: Headers = ()
) -> None:
    own = [(b"content-type", b"application/json"), (b"content-length", str(len(encoded)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": encoded})
