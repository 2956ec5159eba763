"""Ignores the offer of another protocol: `curl --http2` and Java's HttpClient offer HTTP/2.

The parser takes all bytes after such a head for the other protocol, the body included. So the
request is parsed again, without the offer.
"""

from collections.abc import Sequence

_OFFER = (b"upgrade", b"http2-settings")


def write_head(
    method: bytes, url: bytes, http_version: str, headers: Sequence[tuple[bytes, bytes]]
) -> bytes:
    lines = [b"%b %b HTTP/%b" % (method, url, http_version.encode())]
    for name, value in headers:
        if name == b"connection":
            lines.append(b"connection: " + _without_offer(value))
        elif name not in _OFFER:
            lines.append(name + b": " + value)
    return b"\r\n".join([*lines, b"", b""])


def _without_offer(connection: bytes) -> bytes:
    tokens = [token.strip() for token in connection.split(b",")]
    return b", ".join(token for token in tokens if token.lower() not in _OFFER)
