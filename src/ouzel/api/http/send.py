"""An answer goes out as one object in JSON, or as a stream that begins with its first piece."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from http import HTTPStatus

import msgspec
from starlette.responses import Response
from starlette.types import Send

Headers = Sequence[tuple[bytes, bytes]]


def json_response(value: object, status: int = HTTPStatus.OK) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def send_json(encoded: bytes, send: Send, *, status: int = HTTPStatus.OK, headers: Headers = ()) -> None:
    own = [(b"content-type", b"application/json"), (b"content-length", str(len(encoded)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": encoded})


async def send_stream(
    pieces: AsyncGenerator[bytes, None], send: Send, *, headers: Headers, end: Callable[[], bytes]
) -> None:
    """Starts the response with the first piece, so that what fails before it has an honest status.

    `end` is asked for the last bytes when the pieces are over. An exception of theirs leaves the response open, for the
    error's frame.
    """
    start = {"type": "http.response.start", "status": HTTPStatus.OK.value, "headers": [*headers]}
    is_started = False
    async with aclosing(pieces):
        async for piece in pieces:
            if not is_started:
                await send(start)
                is_started = True
            if piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    if not is_started:
        await send(start)
    await send({"type": "http.response.body", "body": end()})
