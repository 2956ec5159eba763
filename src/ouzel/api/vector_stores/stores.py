"""Creates, lists, changes, searches and deletes vector stores.

A client finds only its own key's.
"""

import secrets

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.send import json_response
from ouzel.api.vector_stores.bodies import (
    AddFile,
    ChangeVectorStore,
    CreateVectorStore,
    SearchVectorStore,
)
from ouzel.api.vector_stores.objects import (
    DeletedVectorStore,
    SearchResult,
    SearchResults,
    VectorStore,
    VectorStoreList,
)
from ouzel.api.vector_stores.room import (
    PAGE,
    VectorStoreRoom,
    find_files,
    get_key_id,
    read_page,
    read_path,
    read_query,
)
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.file_search.ranking_fields import make_query
from ouzel.store.errors import VectorStoreNotFound
from ouzel.store.vector_stores.records import NewVectorStore, StoreChange, StoredVectorStore

_ID = "vector_store_id"


class VectorStoreEndpoints:
    def __init__(self, catalogue: Catalogue) -> None:
        self._room = VectorStoreRoom(catalogue)

    async def create(self, request: Request) -> Response:
        fields = await self._room.read_body(request, CreateVectorStore)
        store, search = self._room.require()
        key_id = get_key_id(request)
        added = [
            AddFile(file_id=file_id, chunking_strategy=fields.chunking_strategy)
            for file_id in dict.fromkeys(fields.file_ids or ())
        ]
        files = await find_files(store, key_id, added, path="file_ids")
        new = NewVectorStore(
            id=f"vs_{secrets.token_hex(16)}",
            key_id=key_id,
            name=fields.name or "",
            description=fields.description,
            metadata=msgspec.json.encode(fields.metadata or {}),
            model=search.embedder.choose_model(),
            expires_after_days=None if fields.expires_after is None else fields.expires_after.days,
        )
        stored = await store.vector_stores.create(new, files)
        search.has_new_files.set()
        return json_response(VectorStore.of(stored))

    async def list(self, request: Request) -> Response:
        page = read_page(read_query(request))
        if self._room.is_empty:
            return json_response(VectorStoreList.of((), VectorStore.of))
        found = await self._room.find_store("").vector_stores.page(get_key_id(request), page)
        return json_response(
            VectorStoreList.of(found.stores, VectorStore.of, has_more=found.has_more)
        )

    async def retrieve(self, request: Request) -> Response:
        return json_response(VectorStore.of(await self._find(request)))

    async def change(self, request: Request) -> Response:
        fields = await self._room.read_body(request, ChangeVectorStore)
        old = await self._find(request)
        days = old.expires_after_days
        metadata = fields.metadata
        change = StoreChange(
            name=old.name if fields.name is None else fields.name,
            metadata=old.metadata if metadata is None else msgspec.json.encode(metadata),
            expires_after_days=days if fields.expires_after is None else fields.expires_after.days,
        )
        store = self._room.find_store(old.id)
        changed = await store.vector_stores.change(old.id, get_key_id(request), change)
        return json_response(VectorStore.of(changed))

    async def delete(self, request: Request) -> Response:
        store_id = read_path(request, _ID)
        store = self._room.find_store(store_id)
        if not await store.vector_stores.delete(store_id, get_key_id(request)):
            raise VectorStoreNotFound(store_id)
        return json_response(DeletedVectorStore(store_id))

    async def search(self, request: Request) -> Response:
        fields = await self._room.read_body(request, SearchVectorStore)
        store_id = read_path(request, _ID)
        if fields.rewrite_query:
            raise InvalidRequest(
                "must be false: this server searches a question as it is, given true",
                field="rewrite_query",
            )
        texts = [fields.query] if isinstance(fields.query, str) else fields.query
        query = make_query(
            (store_id,),
            tuple(texts),
            max_hits=fields.max_num_results,
            filters=fields.filters,
            ranking=fields.ranking_options,
        )
        hits = await self._room.find_search(store_id).search(query, get_key_id(request))
        return json_response(SearchResults(texts, [SearchResult.of(hit) for hit in hits]))

    async def _find(self, request: Request) -> StoredVectorStore:
        store_id = read_path(request, _ID)
        store = self._room.find_store(store_id)
        found = await store.vector_stores.get(store_id, get_key_id(request))
        if found is None:
            raise VectorStoreNotFound(store_id)
        return found


_PATH = "/v1/vector_stores"
OPERATIONS = (
    Operation(
        method="post",
        path=_PATH,
        prefixes=PREFIXES,
        summary="Creates a vector store; its files are indexed in the background.",
        overall=lambda catalogue: VectorStoreEndpoints(catalogue).create,
        bodies=(CreateVectorStore,),
        answers=(VectorStore,),
    ),
    Operation(
        method="get",
        path=_PATH,
        prefixes=PREFIXES,
        summary="Lists the vector stores.",
        overall=lambda catalogue: VectorStoreEndpoints(catalogue).list,
        query=PAGE,
        answers=(VectorStoreList,),
    ),
    Operation(
        method="get",
        path=f"{_PATH}/{{vector_store_id}}",
        prefixes=PREFIXES,
        summary="Describes a vector store.",
        overall=lambda catalogue: VectorStoreEndpoints(catalogue).retrieve,
        answers=(VectorStore,),
    ),
    Operation(
        method="post",
        path=f"{_PATH}/{{vector_store_id}}",
        prefixes=PREFIXES,
        summary="Changes the name, the labels or the expiry of a vector store.",
        overall=lambda catalogue: VectorStoreEndpoints(catalogue).change,
        bodies=(ChangeVectorStore,),
        answers=(VectorStore,),
    ),
    Operation(
        method="delete",
        path=f"{_PATH}/{{vector_store_id}}",
        prefixes=PREFIXES,
        summary="Deletes a vector store; its uploaded files stay.",
        overall=lambda catalogue: VectorStoreEndpoints(catalogue).delete,
        answers=(DeletedVectorStore,),
    ),
    Operation(
        method="post",
        path=f"{_PATH}/{{vector_store_id}}/search",
        prefixes=PREFIXES,
        summary="Searches the files of a vector store, by vectors and by words.",
        overall=lambda catalogue: VectorStoreEndpoints(catalogue).search,
        bodies=(SearchVectorStore,),
        answers=(SearchResults,),
    ),
)
