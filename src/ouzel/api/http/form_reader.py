"""Reads a form with a file piece by piece, within limits of size and time."""

import asyncio
import time
from collections.abc import AsyncGenerator

from starlette.types import Receive, Scope

from ouzel.api.http.body_reader import check_encoding
from ouzel.api.http.errors import BodyTimeout, PayloadTooLarge
from ouzel.api.http.exchange import ClientDisconnected, get_header
from ouzel.api.http.form_parser import FormParser, FormPart
from ouzel.api.http.refusal import raise_refusal

_MAX_REST_BYTES = 2**20  # bytes of a form besides its file
_LEAST_BYTES_PER_S = 1024.0  # a slower upload holds a place for ever


class FormReader:
    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        *,
        max_file_bytes: int,
        body_timeout_s: float,
        field: str = "file",
        limit: str = "max_file_bytes",
        needs_filename: bool = True,
    ) -> None:
        """Reads a form whose file is in `field`; `limit` is the name of the limit, for errors.

        Without `needs_filename` the part `field` is a file, also if it has no filename.
        Raises InvalidRequest for a body of another type, and PayloadTooLarge.
        """
        self._field = field
        self._limit = limit
        check_encoding(scope)
        content_type = get_header(scope, b"content-type") or ""
        self._parser = FormParser(content_type, file_field="" if needs_filename else field)
        self._scope = scope
        self._receive = receive
        self._max_file_bytes = max_file_bytes
        self._body_timeout_s = body_timeout_s
        announced = get_header(scope, b"content-length") or ""
        if announced.isdecimal() and int(announced) > max_file_bytes + _MAX_REST_BYTES:
            raise self.too_long()

    def too_long(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"{self._field} must be <= {self._max_file_bytes} bytes long ({self._limit})"
        )

    async def parts(self) -> AsyncGenerator[FormPart, None]:
        """Yields the parts of the form.

        Raises InvalidRequest, PayloadTooLarge, BodyTimeout and ClientDisconnected.
        """
        timeout_s = self._body_timeout_s
        more, num_bytes, begun_s = True, 0, time.monotonic()
        while more:
            try:
                async with asyncio.timeout(timeout_s):
                    message = await self._receive()
            except TimeoutError:
                raise BodyTimeout(
                    f"the next piece of the upload must arrive within {timeout_s:g} s"
                ) from None
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            data = message.get("body", b"")
            num_bytes += len(data)
            if num_bytes > self._max_file_bytes + _MAX_REST_BYTES:
                raise self.too_long()
            late_s = time.monotonic() - begun_s - timeout_s
            if late_s > num_bytes / _LEAST_BYTES_PER_S:
                raise BodyTimeout(
                    f"an upload must have >= {_LEAST_BYTES_PER_S:g} bytes in a second after its "
                    f"first {timeout_s:g} s"
                )
            for part in self._parser.feed(data):
                yield part
            more = message.get("more_body", False)
        raise_refusal(self._scope)
        self._parser.finish()
