"""Receives an upload piece by piece, so that memory holds one piece of it."""

import asyncio
from contextlib import suppress

from starlette.types import Receive, Scope

from ouzel.api.files.objects import FileObject, check_purpose, read_expiry
from ouzel.api.files.piece_writer import PIECE_BYTES, PieceWriter
from ouzel.api.http.body_reader import BodyReader
from ouzel.api.http.form_parser import FileBegin, FileBytes, FormField, FormPart
from ouzel.api.http.form_reader import FormReader
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.responses.output_items import new_id
from ouzel.store.base import Store
from ouzel.store.errors import StoreUnavailable
from ouzel.store.files.base import FileStore
from ouzel.store.files.records import NewFile

_FILE = "file"


class Uploads:
    def __init__(
        self, store: Store, limits: LimitsConfig, max_file_bytes: int, bodies: BodyReader
    ) -> None:
        self._files = store.files
        self._limits = limits
        self._max_file_bytes = max_file_bytes
        self._bodies = bodies

    async def receive(self, scope: Scope, receive: Receive, key_id: str | None) -> FileObject:
        """Stores the file of a form. An upload that fails leaves nothing.

        Raises InvalidRequest, PayloadTooLarge, BodyTimeout and ClientDisconnected, and the errors
        of the store.
        """
        form = FormReader(
            scope,
            receive,
            max_file_bytes=self._max_file_bytes,
            body_timeout_s=self._limits.body_timeout_s,
        )
        writer = PieceWriter(self._files, form.too_long(), self._max_file_bytes)
        upload = _Upload(self._files, key_id, writer)
        with self._bodies.share() as share:
            share.expect(2 * PIECE_BYTES)
            try:
                async for part in form.parts():
                    await upload.take(part)
                return await upload.finish()
            except BaseException:
                with suppress(StoreUnavailable):  # the sweep deletes it later
                    await asyncio.shield(writer.drop())
                raise


class _Upload:
    """One upload: its fields and its file."""

    def __init__(self, files: FileStore, key_id: str | None, writer: PieceWriter) -> None:
        self._files = files
        self._key_id = key_id
        self._writer = writer
        self._fields: dict[str, str] = {}

    async def take(self, part: FormPart) -> None:
        match part:
            case FormField(name, text):
                self._fields[name] = text
                if name == "purpose":
                    check_purpose(text)
            case FileBegin(name, filename):
                if name != _FILE:
                    raise InvalidRequest("must not be a file: the file is in `file`", field=name)
                if self._writer.file_id is not None:
                    raise InvalidRequest("must be given once", field=_FILE)
                filename = filename or "upload"
                await self._writer.begin(
                    NewFile(id=new_file_id(), key_id=self._key_id, filename=filename)
                )
            case FileBytes(data):
                await self._writer.add(data)

    async def finish(self) -> FileObject:
        purpose, expires_after_s = (
            check_purpose(self._fields.get("purpose")),
            read_expiry(self._fields),
        )
        file_id = self._writer.file_id
        if file_id is None:
            raise InvalidRequest("is required, with a filename", field=_FILE)
        await self._writer.flush()
        return FileObject.of(await self._files.finish(file_id, purpose, expires_after_s))


def new_file_id() -> str:
    """Returns an id in OpenAI's form."""
    return new_id("file").replace("_", "-", 1)
