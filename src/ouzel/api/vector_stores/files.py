"""Adds files to a vector store, lists, changes and removes them, and returns their texts."""

import secrets

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.send import json_response
from ouzel.api.vector_stores.bodies import (
    MAX_FILES,
    AddFile,
    AddFileBatch,
    ChangeFile,
    write_attributes,
)
from ouzel.api.vector_stores.objects import (
    DeletedVectorStoreFile,
    FileBatch,
    FileContent,
    TextContent,
    VectorStoreFile,
    VectorStoreFileList,
    join_chunks,
)
from ouzel.api.vector_stores.room import (
    FILE_PAGE,
    VectorStoreRoom,
    find_files,
    get_key_id,
    read_page,
    read_path,
    read_query,
    read_status,
)
from ouzel.store.errors import FileBatchNotFound, VectorFileNotFound
from ouzel.store.vector_stores.records import StoredChunk, StoredFileBatch, StoredVectorFile

_STORE_ID, _FILE_ID, _BATCH_ID = "vector_store_id", "file_id", "batch_id"
_CHUNKS_AT_ONCE = 500


class FileEndpoints:
    def __init__(self, catalogue: Catalogue) -> None:
        self._room = VectorStoreRoom(catalogue)

    async def add(self, request: Request) -> Response:
        fields = await self._room.read_body(request, AddFile)
        store_id = read_path(request, _STORE_ID)
        [file] = await self._add(request, [fields], path="file_id")
        assert file.store_id == store_id
        return json_response(VectorStoreFile.of(file))

    async def list_all(self, request: Request) -> Response:
        query = read_query(request, "filter")
        store_id = read_path(request, _STORE_ID)
        found = await self._room.find_store(store_id).vector_stores.file_page(
            store_id, get_key_id(request), read_page(query), status=read_status(query)
        )
        return json_response(
            VectorStoreFileList.of(found.files, VectorStoreFile.of, has_more=found.has_more)
        )

    async def retrieve(self, request: Request) -> Response:
        return json_response(VectorStoreFile.of(await self._find(request)))

    async def change(self, request: Request) -> Response:
        fields = await self._room.read_body(request, ChangeFile)
        store_id, file_id = read_path(request, _STORE_ID), read_path(request, _FILE_ID)
        changed = await self._room.find_store(store_id).vector_stores.set_attributes(
            store_id, get_key_id(request), file_id, write_attributes(fields.attributes)
        )
        if changed is None:
            raise VectorFileNotFound(file_id)
        return json_response(VectorStoreFile.of(changed))

    async def remove(self, request: Request) -> Response:
        store_id, file_id = read_path(request, _STORE_ID), read_path(request, _FILE_ID)
        vector_stores = self._room.find_store(store_id).vector_stores
        if not await vector_stores.remove_file(store_id, get_key_id(request), file_id):
            raise VectorFileNotFound(file_id)
        return json_response(DeletedVectorStoreFile(file_id))

    async def content(self, request: Request) -> Response:
        """Answers with the text that was read from the file."""
        file = await self._find(request)
        vector_stores = self._room.find_store(file.store_id).vector_stores
        pieces: list[str] = []
        first = end = 0
        chunks: list[StoredChunk] = []
        while not first or len(chunks) == _CHUNKS_AT_ONCE:
            chunks = await vector_stores.chunks_of_file(
                file.number, first=first, limit=_CHUNKS_AT_ONCE
            )
            piece, end = join_chunks(chunks, end)
            pieces.append(piece)
            first += _CHUNKS_AT_ONCE
        return json_response(FileContent([TextContent("".join(pieces))]))

    async def add_batch(self, request: Request) -> Response:
        fields = await self._room.read_body(request, AddFileBatch)
        files, store_id = fields.read_files(), read_path(request, _STORE_ID)
        batch_id = f"vsfb_{secrets.token_hex(16)}"
        path = "file_ids" if fields.files is None else "files"
        await self._add(request, files, path=path, batch_id=batch_id)
        return json_response(FileBatch.of(await self._find_batch(request, store_id, batch_id)))

    async def retrieve_batch(self, request: Request) -> Response:
        store_id, batch_id = read_path(request, _STORE_ID), read_path(request, _BATCH_ID)
        return json_response(FileBatch.of(await self._find_batch(request, store_id, batch_id)))

    async def cancel_batch(self, request: Request) -> Response:
        store_id, batch_id = read_path(request, _STORE_ID), read_path(request, _BATCH_ID)
        cancelled = await self._room.find_store(store_id).vector_stores.cancel_batch(
            store_id, get_key_id(request), batch_id
        )
        if cancelled is None:
            raise FileBatchNotFound(batch_id)
        return json_response(FileBatch.of(cancelled))

    async def list_batch(self, request: Request) -> Response:
        query = read_query(request, "filter")
        store_id, batch_id = read_path(request, _STORE_ID), read_path(request, _BATCH_ID)
        await self._find_batch(request, store_id, batch_id)
        found = await self._room.find_store(store_id).vector_stores.file_page(
            store_id,
            get_key_id(request),
            read_page(query),
            status=read_status(query),
            batch_id=batch_id,
        )
        return json_response(
            VectorStoreFileList.of(found.files, VectorStoreFile.of, has_more=found.has_more)
        )

    async def _add(
        self, request: Request, files: list[AddFile], *, path: str, batch_id: str | None = None
    ) -> list[StoredVectorFile]:
        store_id, key_id = read_path(request, _STORE_ID), get_key_id(request)
        store = self._room.find_store(store_id)
        search = self._room.find_search(store_id)
        await search.find_stores([store_id], key_id)
        new = await find_files(store, key_id, files, path=path)
        added = await store.vector_stores.add_files(
            store_id, key_id, new, batch_id=batch_id, max_files=MAX_FILES
        )
        search.has_new_files.set()
        return added

    async def _find(self, request: Request) -> StoredVectorFile:
        store_id, file_id = read_path(request, _STORE_ID), read_path(request, _FILE_ID)
        found = await self._room.find_store(store_id).vector_stores.file(
            store_id, get_key_id(request), file_id
        )
        if found is None:
            raise VectorFileNotFound(file_id)
        return found

    async def _find_batch(self, request: Request, store_id: str, batch_id: str) -> StoredFileBatch:
        found = await self._room.find_store(store_id).vector_stores.batch(
            store_id, get_key_id(request), batch_id
        )
        if found is None:
            raise FileBatchNotFound(batch_id)
        return found


_FILES = "/v1/vector_stores/{vector_store_id}/files"
_BATCHES = "/v1/vector_stores/{vector_store_id}/file_batches"
OPERATIONS = (
    Operation(
        method="post",
        path=_FILES,
        prefixes=PREFIXES,
        summary="Adds an uploaded file to a vector store; it is indexed in the background.",
        overall=lambda catalogue: FileEndpoints(catalogue).add,
        bodies=(AddFile,),
        answers=(VectorStoreFile,),
    ),
    Operation(
        method="get",
        path=_FILES,
        prefixes=PREFIXES,
        summary="Lists the files of a vector store.",
        overall=lambda catalogue: FileEndpoints(catalogue).list_all,
        query=FILE_PAGE,
        answers=(VectorStoreFileList,),
    ),
    Operation(
        method="get",
        path=f"{_FILES}/{{file_id}}",
        prefixes=PREFIXES,
        summary="Describes a file of a vector store.",
        overall=lambda catalogue: FileEndpoints(catalogue).retrieve,
        answers=(VectorStoreFile,),
    ),
    Operation(
        method="post",
        path=f"{_FILES}/{{file_id}}",
        prefixes=PREFIXES,
        summary="Replaces the attributes of a file.",
        overall=lambda catalogue: FileEndpoints(catalogue).change,
        bodies=(ChangeFile,),
        answers=(VectorStoreFile,),
    ),
    Operation(
        method="delete",
        path=f"{_FILES}/{{file_id}}",
        prefixes=PREFIXES,
        summary="Removes a file from a vector store; the uploaded file stays.",
        overall=lambda catalogue: FileEndpoints(catalogue).remove,
        answers=(DeletedVectorStoreFile,),
    ),
    Operation(
        method="get",
        path=f"{_FILES}/{{file_id}}/content",
        prefixes=PREFIXES,
        summary="Returns the text that was read from a file.",
        overall=lambda catalogue: FileEndpoints(catalogue).content,
        answers=(FileContent,),
    ),
    Operation(
        method="post",
        path=_BATCHES,
        prefixes=PREFIXES,
        summary="Adds several files to a vector store.",
        overall=lambda catalogue: FileEndpoints(catalogue).add_batch,
        bodies=(AddFileBatch,),
        answers=(FileBatch,),
    ),
    Operation(
        method="get",
        path=f"{_BATCHES}/{{batch_id}}",
        prefixes=PREFIXES,
        summary="Describes the progress of several files.",
        overall=lambda catalogue: FileEndpoints(catalogue).retrieve_batch,
        answers=(FileBatch,),
    ),
    Operation(
        method="post",
        path=f"{_BATCHES}/{{batch_id}}/cancel",
        prefixes=PREFIXES,
        summary="Stops the indexing of the files that are in progress.",
        overall=lambda catalogue: FileEndpoints(catalogue).cancel_batch,
        answers=(FileBatch,),
    ),
    Operation(
        method="get",
        path=f"{_BATCHES}/{{batch_id}}/files",
        prefixes=PREFIXES,
        summary="Lists the files that were added together.",
        overall=lambda catalogue: FileEndpoints(catalogue).list_batch,
        query=FILE_PAGE,
        answers=(VectorStoreFileList,),
    ),
)
