"""Uploads, lists, returns and deletes files. A client finds only its own key's."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation, QueryField
from ouzel.api.endpoint.pages import PAGE_PARAMETERS, describe_page, read_page
from ouzel.api.files.byte_range import ByteRange, read_range
from ouzel.api.files.objects import PURPOSES, DeletedFile, FileList, FileObject
from ouzel.api.files.upload import Uploads
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.query import Query
from ouzel.api.http.send import json_response
from ouzel.errors import InvalidRequest
from ouzel.store.base import Store
from ouzel.store.errors import FileNotFound
from ouzel.store.files.records import StoredFile

_MOST_LISTED = 10_000
_PAGE = (
    QueryField("purpose", {"type": "string"}, "Lists only files with this purpose."),
    *describe_page("file", default=_MOST_LISTED, most=_MOST_LISTED, order="desc"),
)
_FORM = {
    "type": "object",
    "required": ["file", "purpose"],
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "purpose": {"enum": list(PURPOSES)},
        "expires_after[anchor]": {"enum": ["created_at"]},
        "expires_after[seconds]": {"type": "integer", "minimum": 3600, "maximum": 2592000},
    },
}


class FileEndpoints:
    def __init__(self, catalogue: Catalogue) -> None:
        self._shared = catalogue.shared

    async def upload(self, request: Request) -> Response:
        shared = self._shared
        if shared.store is None:
            raise InvalidRequest("a file cannot be uploaded: this server stores nothing")
        uploads = Uploads(shared.store, shared.limits, shared.max_file_bytes, shared.bodies)
        key_id = get_exchange(request.scope).key_id
        return json_response(await uploads.receive(request.scope, request.receive, key_id))

    async def list(self, request: Request) -> Response:
        query = Query(request.query_params, "purpose", *PAGE_PARAMETERS)
        page = read_page(query, default=_MOST_LISTED, most=_MOST_LISTED, order="desc")
        if self._shared.store is None:
            return json_response(FileList.of((), FileObject.of))
        key_id = get_exchange(request.scope).key_id
        found = await self._shared.store.files.page(key_id, query.text("purpose"), page)
        return json_response(FileList.of(found.files, FileObject.of, has_more=found.has_more))

    async def retrieve(self, request: Request) -> Response:
        return json_response(FileObject.of(await self._find(request)))

    async def content(self, request: Request) -> Response:
        file = await self._find(request)
        key_id = get_exchange(request.scope).key_id
        name = quote(file.filename, safe="")
        # A client that sends If-Range wants the whole file if it has changed: there are no ETags.
        wanted = None if "if-range" in request.headers else request.headers.get("range")
        part = read_range(wanted, file.size_bytes)
        partial = {}
        if part is not None:
            partial["content-range"] = f"bytes {part.first}-{part.end - 1}/{file.size_bytes}"
        whole = part or ByteRange(0, file.size_bytes)
        return StreamingResponse(
            whole.cut(self._store(request).files.read(file.id, key_id, whole.first)),
            status_code=200 if part is None else 206,
            media_type="application/octet-stream",
            headers={
                **partial,
                "accept-ranges": "bytes",
                "content-length": str(whole.end - whole.first),
                "content-disposition": f"attachment; filename*=UTF-8''{name}",
                "x-content-type-options": "nosniff",
            },
        )

    async def delete(self, request: Request) -> Response:
        file_id = _id(request)
        if not await self._store(request).files.delete(file_id, get_exchange(request.scope).key_id):
            raise FileNotFound(file_id)
        return json_response(DeletedFile(file_id))

    async def _find(self, request: Request) -> StoredFile:
        file = await self._store(request).files.get(
            _id(request), get_exchange(request.scope).key_id
        )
        if file is None:
            raise FileNotFound(_id(request))
        return file

    def _store(self, request: Request) -> Store:
        if self._shared.store is None:
            raise FileNotFound(_id(request))
        return self._shared.store


def _id(request: Request) -> str:
    file_id = request.path_params["file_id"]
    assert isinstance(file_id, str)
    return file_id


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/files",
        prefixes=PREFIXES,
        summary="Uploads a file, as multipart/form-data.",
        overall=lambda catalogue: FileEndpoints(catalogue).upload,
        form=_FORM,
        answers=(FileObject,),
    ),
    Operation(
        method="get",
        path="/v1/files",
        prefixes=PREFIXES,
        summary="Lists the files.",
        overall=lambda catalogue: FileEndpoints(catalogue).list,
        query=_PAGE,
        answers=(FileList,),
    ),
    Operation(
        method="get",
        path="/v1/files/{file_id}",
        prefixes=PREFIXES,
        summary="Describes a file.",
        overall=lambda catalogue: FileEndpoints(catalogue).retrieve,
        answers=(FileObject,),
    ),
    Operation(
        method="get",
        path="/v1/files/{file_id}/content",
        prefixes=PREFIXES,
        summary="Returns the content of a file.",
        overall=lambda catalogue: FileEndpoints(catalogue).content,
        media_type="application/octet-stream",
    ),
    Operation(
        method="delete",
        path="/v1/files/{file_id}",
        prefixes=PREFIXES,
        summary="Deletes a file.",
        overall=lambda catalogue: FileEndpoints(catalogue).delete,
        answers=(DeletedFile,),
    ),
)
