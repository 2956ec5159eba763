"""Checks the handshake of a WebSocket before the connection is upgraded.

So errors are answered like errors of other requests. The library would use its own words, or log a
traceback.
"""

import logging
from collections.abc import Sequence

from ouzel.api.http.errors import HeadTooLarge
from ouzel.errors import InvalidRequest

MAX_LINE_BYTES = 8190  # limit of a header line in the websockets library
_silent = logging.Logger("silent", logging.CRITICAL + 1)


def check_handshake(method: bytes, url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Raises InvalidRequest for a faulty handshake."""
    # imported here, because only servers with WebSockets need them
    from websockets.datastructures import Headers  # noqa: PLC0415
    from websockets.http11 import Request  # noqa: PLC0415
    from websockets.server import ServerProtocol  # noqa: PLC0415

    if method != b"GET":
        raise InvalidRequest(f"a WebSocket begins with a GET, given {method.decode()}")
    if not url.isascii():
        raise InvalidRequest("the URL of a WebSocket must be ASCII")
    for name, value in headers:
        if len(name) + len(value) + 2 > MAX_LINE_BYTES:
            raise HeadTooLarge(f"headers of a WebSocket must be <= {MAX_LINE_BYTES} bytes long")
        if name.startswith((b"sec-websocket-", b"upgrade", b"connection")) and not value.isascii():
            raise InvalidRequest(f"the header {name.decode()} must be ASCII")
    decoded = Headers([(name.decode(), value.decode("latin-1")) for name, value in headers])
    connection = ServerProtocol(logger=_silent)
    connection.accept(Request(url.decode(), decoded))
    if connection.handshake_exc is not None:
        raise InvalidRequest(f"no WebSocket can be opened: {connection.handshake_exc}")
