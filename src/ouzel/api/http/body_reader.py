"""Reads request bodies within limits of bytes and time, and within one budget for all bodies."""

import asyncio
from contextlib import AbstractContextManager
from typing import Protocol

from starlette.types import Receive, Scope

from ouzel.api.http.body_budget import BodyBudget, Share
from ouzel.api.http.errors import BodyTimeout, PayloadTooLarge, UnsupportedEncoding
from ouzel.api.http.exchange import ClientDisconnected, get_exchange, get_header
from ouzel.api.http.refusal import raise_refusal
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest


class ReadsBodies(Protocol):
    """Reads the bodies of one kind of endpoint."""

    def share(self) -> AbstractContextManager[Share]: ...

    async def read(self, scope: Scope, receive: Receive, share: Share) -> bytes: ...


class BodyReader:
    def __init__(self, limits: LimitsConfig) -> None:
        self._max_body_bytes = limits.max_body_bytes
        self._body_timeout_s = limits.body_timeout_s
        self._budget = BodyBudget(limits.most_body_bytes)

    def share(self) -> AbstractContextManager[Share]:
        """Opens a share of the byte budget for one body; it is returned at the end of the block."""
        return self._budget.share()

    async def read(self, scope: Scope, receive: Receive, share: Share) -> bytes:
        """Returns the body, and stores it in the exchange for later calls, whose share stays empty.

        Raises PayloadTooLarge and Overloaded as soon as possible; the rest of such a body is
        dropped. Also raises UnsupportedEncoding, BodyTimeout and ClientDisconnected.
        """
        exchange = get_exchange(scope)
        if exchange.body is None:
            exchange.body = await self._read(scope, receive, share)
        return exchange.body

    async def _read(self, scope: Scope, receive: Receive, share: Share) -> bytes:
        check_encoding(scope)
        try:
            async with asyncio.timeout(self._body_timeout_s):
                return await _receive_body(scope, receive, self._max_body_bytes, share)
        except TimeoutError:
            raise BodyTimeout(
                f"the request body must arrive within {self._body_timeout_s:g} s"
            ) from None


def check_encoding(scope: Scope) -> None:
    """Raises UnsupportedEncoding if the body is compressed."""
    encoding = (get_header(scope, b"content-encoding") or "identity").strip().lower()
    if encoding != "identity":
        raise UnsupportedEncoding(f"Content-Encoding must be identity, given {encoding[:40]}")


async def _receive_body(scope: Scope, receive: Receive, max_body_bytes: int, share: Share) -> bytes:
    announced = _announced_bytes(scope)
    if announced is not None:
        if announced > max_body_bytes:
            raise _too_large(max_body_bytes)
        share.expect(announced)
    body = bytearray()  # a bytearray, because pieces may be one byte long
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        body += message.get("body", b"")
        if len(body) > max_body_bytes:
            raise _too_large(max_body_bytes)
        share.grow_to(len(body))
        more = message.get("more_body", False)
    raise_refusal(scope)
    return bytes(body)


def _announced_bytes(scope: Scope) -> int | None:
    announced = get_header(scope, b"content-length")
    return int(announced) if announced is not None and announced.isdecimal() else None


def _too_large(max_body_bytes: int) -> InvalidRequest:
    return PayloadTooLarge(f"the request body must be <= {max_body_bytes} bytes long")
