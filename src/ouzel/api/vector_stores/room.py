"""The common parts of the endpoints about vector stores."""

from typing import TypeVar

import msgspec
from starlette.requests import Request

from ouzel.api.endpoint import pages
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import QueryField
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.query import Query
from ouzel.api.vector_stores.bodies import AddFile, write_attributes
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.file_search.search import FileSearch
from ouzel.store.base import Store
from ouzel.store.errors import FileNotFound, VectorStoreNotFound
from ouzel.store.vector_stores.records import CursorRequest, FileStatus, NewVectorFile
from ouzel.wire.decode import decode_body

Body = TypeVar("Body", bound=msgspec.Struct)

_AUTO_STRATEGY = b"{}"
_CURSORS = (*pages.PAGE_PARAMETERS, "before")
PAGE = (
    *pages.describe_page("object", order="desc"),
    QueryField("before", {"type": "string"}, "The page ends before the object with this id."),
)
FILE_PAGE = (
    *PAGE,
    QueryField(
        "filter",
        {"enum": [status.value for status in FileStatus]},
        "Lists only files with this status.",
    ),
)


class VectorStoreRoom:
    """Finds the store and the body of a request about vector stores."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._shared = catalogue.shared

    async def read_body(self, request: Request, body_type: type[Body]) -> Body:
        bodies = self._shared.bodies
        with bodies.share() as share:
            body = await bodies.read(request.scope, request.receive, share)
        return decode_body(body or b"{}", body_type)

    def find_store(self, store_id: str) -> Store:
        """Returns the store. Raises VectorStoreNotFound if the server stores nothing."""
        if self._shared.store is None:
            raise VectorStoreNotFound(store_id)
        return self._shared.store

    def find_search(self, store_id: str) -> FileSearch:
        """Returns the service. Raises VectorStoreNotFound if the server stores nothing."""
        if self._shared.file_search is None:
            raise VectorStoreNotFound(store_id)
        return self._shared.file_search

    def require(self) -> tuple[Store, FileSearch]:
        """Returns the store and the service. Raises InvalidRequest."""
        if self._shared.store is None or self._shared.file_search is None:
            raise InvalidRequest("a vector store cannot be created: this server stores nothing")
        return self._shared.store, self._shared.file_search

    @property
    def is_empty(self) -> bool:
        """Tells whether the server stores nothing."""
        return self._shared.store is None


async def find_files(
    store: Store, key_id: str | None, files: list[AddFile], *, path: str
) -> list[NewVectorFile]:
    """Finds uploads that are added to a vector store. Raises InvalidRequest and FileNotFound."""
    found = []
    for place, file in enumerate(files):
        uploaded = await store.files.get(file.file_id, key_id)
        if uploaded is None:
            raise FileNotFound(file.file_id, param=path)
        strategy = _AUTO_STRATEGY
        if file.chunking_strategy is not None:
            prefix = "" if path in ("file_id", "file_ids") else f"{path}[{place}]."
            strategy = file.chunking_strategy.read(f"{prefix}chunking_strategy")
        found.append(
            NewVectorFile(
                file_id=file.file_id,
                filename=uploaded.filename,
                attributes=write_attributes(file.attributes),
                strategy=strategy,
            )
        )
    return found


def get_key_id(request: Request) -> str | None:
    return get_exchange(request.scope).key_id


def read_path(request: Request, name: str) -> str:
    """Returns a parameter of the path."""
    value = request.path_params[name]
    assert isinstance(value, str)
    return value


def read_page(query: Query) -> CursorRequest:
    page = pages.read_page(query, order="desc")
    return CursorRequest(
        limit=page.limit,
        is_ascending=page.is_ascending,
        after=page.after,
        before=query.text("before"),
    )


def read_query(request: Request, *further: str) -> Query:
    return Query(request.query_params, *_CURSORS, *further)


def read_status(query: Query) -> FileStatus | None:
    """Returns the status by which a list of files is filtered."""
    names = [status.value for status in FileStatus]
    return FileStatus(query.choice("filter", "", names)) if query.has("filter") else None
