"""Reads forms with one file into memory: the fields as a JSON object, the file beside them.

So an endpoint, and the choice of its model, read a form as they read other bodies.
"""

from contextlib import AbstractContextManager

import msgspec
from starlette.types import Receive, Scope

from ouzel.api.http.body_budget import Share
from ouzel.api.http.body_reader import BodyReader
from ouzel.api.http.exchange import get_exchange, get_header
from ouzel.api.http.form_parser import FileBegin, FileBytes, FormField, FormPart
from ouzel.api.http.form_reader import FormReader
from ouzel.api.http.received_file import ReceivedFile
from ouzel.errors import InvalidRequest
from ouzel.wire.form_fields import make_form_object

_FILE = "file"


class FormBodies:
    """Reads forms within the byte budget of all bodies."""

    def __init__(
        self, bodies: BodyReader, *, max_file_bytes: int, limit: str, body_timeout_s: float
    ) -> None:
        """`limit` is the name of the limit `max_file_bytes`, for errors."""
        self._bodies = bodies
        self._max_file_bytes = max_file_bytes
        self._limit = limit
        self._body_timeout_s = body_timeout_s

    def share(self) -> AbstractContextManager[Share]:
        return self._bodies.share()

    async def read(self, scope: Scope, receive: Receive, share: Share) -> bytes:
        """Returns the fields as JSON, with the name of the file in `file`.

        The exchange stores them, and the file, for later calls. Raises InvalidRequest,
        PayloadTooLarge, Overloaded, UnsupportedEncoding, BodyTimeout and ClientDisconnected.
        """
        exchange = get_exchange(scope)
        if exchange.body is None:
            form = FormReader(
                scope,
                receive,
                max_file_bytes=self._max_file_bytes,
                body_timeout_s=self._body_timeout_s,
                limit=self._limit,
                needs_filename=False,
            )
            announced = get_header(scope, b"content-length") or ""
            if announced.isdecimal():
                share.expect(int(announced))
            content = _FormContent(form, share, self._max_file_bytes)
            async for part in form.parts():
                content.take(part)
            exchange.body, exchange.file = content.finish()
        return exchange.body


class _FormContent:
    """Collects the parts of one form."""

    def __init__(self, form: FormReader, share: Share, max_file_bytes: int) -> None:
        self._form = form
        self._share = share
        self._max_file_bytes = max_file_bytes
        self._fields: list[tuple[str, str]] = []
        self._num_field_bytes = 0
        self._filename: str | None = None
        self._data = bytearray()

    def take(self, part: FormPart) -> None:
        match part:
            case FormField(name, text):
                self._fields.append((name, text))
                self._num_field_bytes += len(text)
            case FileBegin(name, filename):
                if name != _FILE:
                    raise InvalidRequest("must not be a file: the file is in `file`", field=name)
                if self._filename is not None:
                    raise InvalidRequest("must be given once", field=_FILE)
                self._filename = filename
            case FileBytes(data):
                self._data += data
                if len(self._data) > self._max_file_bytes:
                    raise self._form.too_long()
        self._share.grow_to(self._num_field_bytes + len(self._data))

    def finish(self) -> tuple[bytes, ReceivedFile | None]:
        made = make_form_object(self._fields)
        if self._filename is None:
            return msgspec.json.encode(made), None
        made[_FILE] = self._filename
        data, self._data = bytes(self._data), bytearray()
        return msgspec.json.encode(made), ReceivedFile(data, self._share)
