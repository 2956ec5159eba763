"""Uploads files in parts. A client finds only its own key's uploads."""

import asyncio
import hashlib
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.files.objects import FileObject
from ouzel.api.files.piece_writer import PIECE_BYTES, PieceWriter
from ouzel.api.files.upload import new_file_id
from ouzel.api.files.upload_objects import (
    MAX_PART_BYTES,
    CompleteUploadRequest,
    CreateUploadRequest,
    Upload,
    UploadPart,
)
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.form_parser import FileBegin, FileBytes, FormPart
from ouzel.api.http.form_reader import FormReader
from ouzel.api.http.send import json_response
from ouzel.errors import InvalidRequest
from ouzel.responses.output_items import new_id
from ouzel.store.base import Store
from ouzel.store.errors import FileNotFound, StoreUnavailable, UploadEnded, UploadNotFound
from ouzel.store.files.records import NewFile
from ouzel.store.uploads.records import NewUpload, StoredUpload, UploadStatus
from ouzel.wire.decode import decode_body
from ouzel.wire.validation_errors import show_value

_LIFETIME_S = 3600.0  # the time for all parts
_DATA = "data"
_FORM = {
    "type": "object",
    "required": [_DATA],
    "properties": {_DATA: {"type": "string", "format": "binary"}},
}


class UploadEndpoints:
    def __init__(self, catalogue: Catalogue) -> None:
        self._shared = catalogue.shared

    async def create(self, request: Request) -> Response:
        bodies = self._shared.bodies
        with bodies.share() as share:
            body = await bodies.read(request.scope, request.receive, share)
        fields = decode_body(body, CreateUploadRequest)
        if self._shared.store is None:
            raise InvalidRequest("a file cannot be uploaded: this server stores nothing")
        new = NewUpload(
            id=new_id("upload"),
            key_id=get_exchange(request.scope).key_id,
            filename=fields.filename,
            purpose=fields.purpose,
            num_bytes=fields.bytes,
            expires_after_s=_LIFETIME_S,
            file_expires_after_s=None
            if fields.expires_after is None
            else float(fields.expires_after.seconds),
        )
        return json_response(Upload.of(await self._shared.store.uploads.create(new)))

    async def add_part(self, request: Request) -> Response:
        upload_id, key_id = _read_id(request), get_exchange(request.scope).key_id
        store = self._require_store(upload_id)
        await _require_pending(store, upload_id, key_id)
        form = FormReader(
            request.scope,
            request.receive,
            max_file_bytes=MAX_PART_BYTES,
            body_timeout_s=self._shared.limits.body_timeout_s,
            field=_DATA,
            limit="a part of an upload",
        )
        writer = PieceWriter(store.files, form.too_long(), MAX_PART_BYTES)
        with self._shared.bodies.share() as share:
            share.expect(2 * PIECE_BYTES)
            try:
                async for part in form.parts():
                    await _take(part, writer, key_id)
                if writer.file_id is None:
                    raise InvalidRequest("is required, as a file", field=_DATA)
                await writer.flush()
                added = await store.uploads.finish_part(upload_id, writer.file_id, key_id)
            except BaseException as error:
                with suppress(StoreUnavailable):  # the sweep deletes it later
                    await asyncio.shield(writer.drop())
                if isinstance(error, FileNotFound):  # the upload has ended meanwhile
                    await _require_pending(store, upload_id, key_id)
                raise
        return json_response(UploadPart.of(added, upload_id))

    async def complete(self, request: Request) -> Response:
        upload_id, key_id = _read_id(request), get_exchange(request.scope).key_id
        bodies = self._shared.bodies
        with bodies.share() as share:
            body = await bodies.read(request.scope, request.receive, share)
        fields = decode_body(body, CompleteUploadRequest)
        store = self._require_store(upload_id)
        upload = await _require_pending(store, upload_id, key_id)
        await _check_parts(store, upload, fields.part_ids)
        if fields.md5 is not None:
            await _check_md5(store, upload_id, fields.part_ids, fields.md5)
        completed, file = await store.uploads.complete(
            upload_id, key_id, new_file_id(), fields.part_ids
        )
        return json_response(Upload.of(completed, FileObject.of(file)))

    async def cancel(self, request: Request) -> Response:
        upload_id = _read_id(request)
        store = self._require_store(upload_id)
        key_id = get_exchange(request.scope).key_id
        return json_response(Upload.of(await store.uploads.cancel(upload_id, key_id)))

    def _require_store(self, upload_id: str) -> Store:
        """Returns the store. Raises UploadNotFound if the server has none."""
        if self._shared.store is None:
            raise UploadNotFound(upload_id)
        return self._shared.store


async def _require_pending(store: Store, upload_id: str, key_id: str | None) -> StoredUpload:
    """Returns an upload that takes parts. Raises UploadNotFound and UploadEnded."""
    upload = await store.uploads.get(upload_id, key_id)
    if upload is None:
        raise UploadNotFound(upload_id)
    if upload.status is not UploadStatus.PENDING:
        raise UploadEnded(upload_id, upload.status.value)
    return upload


async def _take(part: FormPart, writer: PieceWriter, key_id: str | None) -> None:
    match part:
        case FileBegin(name, _):
            if name != _DATA:
                raise InvalidRequest("must not be a file: the part is in `data`", field=name)
            if writer.file_id is not None:
                raise InvalidRequest("must be given once", field=_DATA)
            await writer.begin(NewFile(id=new_id("part"), key_id=key_id, filename=_DATA))
        case FileBytes(data):
            await writer.add(data)
        case _:
            pass  # an unknown field


async def _check_parts(store: Store, upload: StoredUpload, part_ids: list[str]) -> None:
    """Raises InvalidRequest unless the parts are the whole file."""
    found = {part.id: part.num_bytes for part in await store.uploads.parts(upload.id, part_ids)}
    seen: set[str] = set()
    for position, part_id in enumerate(part_ids):
        field = f"part_ids[{position}]"
        if part_id not in found:
            limit = "must be the id of a part of this upload"
            raise InvalidRequest(f"{limit}, given {show_value(part_id)}", field=field)
        if part_id in seen:
            raise InvalidRequest(f"must be given once, given {show_value(part_id)}", field=field)
        seen.add(part_id)
    num_bytes = sum(found.values())
    if num_bytes != upload.num_bytes:
        raise InvalidRequest(
            f"must have {upload.num_bytes} bytes together, as the upload announced, given "
            f"{num_bytes}",
            field="part_ids",
        )


async def _check_md5(store: Store, upload_id: str, part_ids: list[str], expected: str) -> None:
    """Raises InvalidRequest unless the content has the checksum."""
    checksum = hashlib.md5(usedforsecurity=False)
    async for piece in store.uploads.read(upload_id, part_ids):
        await asyncio.to_thread(checksum.update, piece)
    if checksum.hexdigest() != expected.lower():
        raise InvalidRequest(
            f"must be the checksum of the content, {checksum.hexdigest()}, given {expected}",
            field="md5",
        )


def _read_id(request: Request) -> str:
    upload_id = request.path_params["upload_id"]
    assert isinstance(upload_id, str)
    return upload_id


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/uploads",
        prefixes=PREFIXES,
        summary="Begins an upload in parts.",
        overall=lambda catalogue: UploadEndpoints(catalogue).create,
        bodies=(CreateUploadRequest,),
        answers=(Upload,),
    ),
    Operation(
        method="post",
        path="/v1/uploads/{upload_id}/parts",
        prefixes=PREFIXES,
        summary="Adds a part to an upload, as multipart/form-data.",
        overall=lambda catalogue: UploadEndpoints(catalogue).add_part,
        form=_FORM,
        answers=(UploadPart,),
    ),
    Operation(
        method="post",
        path="/v1/uploads/{upload_id}/complete",
        prefixes=PREFIXES,
        summary="Makes a file of the parts of an upload.",
        overall=lambda catalogue: UploadEndpoints(catalogue).complete,
        bodies=(CompleteUploadRequest,),
        answers=(Upload,),
    ),
    Operation(
        method="post",
        path="/v1/uploads/{upload_id}/cancel",
        prefixes=PREFIXES,
        summary="Cancels an upload and deletes its parts.",
        overall=lambda catalogue: UploadEndpoints(catalogue).cancel,
        answers=(Upload,),
    ),
)
