"""Receives an upload piece by piece, so that memory holds one piece of it."""

import asyncio
from contextlib import suppress

from starlette.types import Receive, Scope

from ouzel.api.files.objects import FileObject, check_purpose, read_expiry
from ouzel.api.http.body_reader import BodyReader
from ouzel.api.http.errors import PayloadTooLarge
from ouzel.api.http.form_parser import FileBegin, FileBytes, FormField, FormPart
from ouzel.api.http.form_reader import FormReader
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.responses.output_items import new_id
from ouzel.store.base import Store
from ouzel.store.errors import StoreUnavailable
from ouzel.store.files.base import FileStore
from ouzel.store.files.records import NewFile

PIECE_BYTES = 2**20
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
        upload = _Upload(self._files, key_id, self._max_file_bytes)
        with self._bodies.share() as share:
            share.expect(2 * PIECE_BYTES)
            try:
                async for part in form.parts():
                    await upload.take(part)
                return await upload.finish()
            except BaseException:
                with suppress(StoreUnavailable):  # the sweep deletes it later
                    await asyncio.shield(upload.drop())
                raise


class _Upload:
    """One upload: its fields, and the piece of its file that is not stored yet."""

    def __init__(self, files: FileStore, key_id: str | None, max_bytes: int) -> None:
        self._files = files
        self._key_id = key_id
        self._max_bytes = max_bytes
        self._fields: dict[str, str] = {}
        self._id: str | None = None
        self._piece = bytearray()
        self._num_pieces = 0
        self._num_bytes = 0

    async def take(self, part: FormPart) -> None:
        match part:
            case FormField(name, text):
                self._fields[name] = text
                if name == "purpose":
                    check_purpose(text)
            case FileBegin(name, filename):
                if name != _FILE:
                    raise InvalidRequest("must not be a file: the file is in `file`", field=name)
                if self._id is not None:
                    raise InvalidRequest("must be given once", field=_FILE)
                self._id = new_id("file").replace("_", "-", 1)
                new = NewFile(id=self._id, key_id=self._key_id, filename=filename or "upload")
                await self._files.begin(new)
            case FileBytes(data):
                await self._add(data)

    async def finish(self) -> FileObject:
        purpose, expires_after_s = (
            check_purpose(self._fields.get("purpose")),
            read_expiry(self._fields),
        )
        if self._id is None:
            raise InvalidRequest("is required, with a filename", field=_FILE)
        await self._store_piece()
        return FileObject.of(await self._files.finish(self._id, purpose, expires_after_s))

    async def drop(self) -> None:
        if self._id is not None:
            await self._files.drop(self._id)

    async def _add(self, data: bytes) -> None:
        self._num_bytes += len(data)
        if self._num_bytes > self._max_bytes:
            raise _too_long(self._max_bytes)
        self._piece += data
        if len(self._piece) >= PIECE_BYTES:
            await self._store_piece()

    async def _store_piece(self) -> None:
        if self._piece:
            assert self._id is not None
            await self._files.add_piece(self._id, self._num_pieces, bytes(self._piece))
            self._num_pieces += 1
            self._piece.clear()


def _too_long(max_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"file must be <= {max_bytes} bytes long (max_file_bytes)")
