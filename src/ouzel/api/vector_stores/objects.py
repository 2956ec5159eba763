"""Defines the objects of vector stores, as OpenAI defines them."""

from typing import Literal

import msgspec

from ouzel.api.endpoint.object_list import ObjectList
from ouzel.hosted_tools.file_search.filters import Attribute
from ouzel.hosted_tools.file_search.indexing import Strategy
from ouzel.hosted_tools.file_search.records import AUTO_CHUNK_TOKENS, FileHit, StaticChunking
from ouzel.store.vector_stores import records
from ouzel.store.vector_stores.records import (
    ErrorCode,
    FileStatus,
    StoredChunk,
    StoredFileBatch,
    StoredVectorFile,
    StoredVectorStore,
)

_DAY_S = 86400
_AUTO = StaticChunking(AUTO_CHUNK_TOKENS, 0)
_labels = msgspec.json.Decoder(dict[str, str])
_attributes = msgspec.json.Decoder(dict[str, Attribute])
_strategy = msgspec.json.Decoder(Strategy)


class FileCounts(msgspec.Struct, frozen=True, kw_only=True):
    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int

    @classmethod
    def of(cls, counts: records.FileCounts) -> "FileCounts":
        return cls(
            in_progress=counts.in_progress,
            completed=counts.completed,
            failed=counts.failed,
            cancelled=counts.cancelled,
            total=counts.total,
        )


class Expiry(msgspec.Struct, frozen=True, kw_only=True):
    anchor: Literal["last_active_at"]
    days: int


class VectorStore(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="vector_store"
):
    """A vector store; times are unix seconds."""

    id: str
    created_at: int
    name: str
    description: str | None
    usage_bytes: int
    file_counts: FileCounts
    status: Literal["expired", "in_progress", "completed"]
    expires_after: Expiry | None
    expires_at: int | None
    last_active_at: int
    metadata: dict[str, str]

    @classmethod
    def of(cls, stored: StoredVectorStore) -> "VectorStore":
        days = stored.expires_after_days
        status: Literal["expired", "in_progress", "completed"] = "completed"
        if stored.is_expired:
            status = "expired"
        elif stored.counts.in_progress:
            status = "in_progress"
        return cls(
            id=stored.id,
            created_at=int(stored.created_at),
            name=stored.name,
            description=stored.description,
            usage_bytes=stored.usage_bytes,
            file_counts=FileCounts.of(stored.counts),
            status=status,
            expires_after=None if days is None else Expiry(anchor="last_active_at", days=days),
            expires_at=None if days is None else int(stored.last_active_at) + days * _DAY_S,
            last_active_at=int(stored.last_active_at),
            metadata=_labels.decode(stored.metadata),
        )


class VectorStoreList(ObjectList[VectorStore], frozen=True):
    pass


class DeletedVectorStore(
    msgspec.Struct, frozen=True, tag_field="object", tag="vector_store.deleted"
):
    id: str
    deleted: bool = True


class LastError(msgspec.Struct, frozen=True):
    code: ErrorCode
    message: str


class StaticStrategy(msgspec.Struct, frozen=True, tag_field="type", tag="static"):
    static: StaticChunking


class VectorStoreFile(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="vector_store.file"
):
    id: str
    usage_bytes: int
    created_at: int
    vector_store_id: str
    status: FileStatus
    last_error: LastError | None
    chunking_strategy: StaticStrategy
    attributes: dict[str, Attribute]

    @classmethod
    def of(cls, stored: StoredVectorFile) -> "VectorStoreFile":
        error = None
        if stored.error_code is not None:
            error = LastError(stored.error_code, stored.error_message or "")
        return cls(
            id=stored.id,
            usage_bytes=stored.usage_bytes,
            created_at=int(stored.created_at),
            vector_store_id=stored.store_id,
            status=stored.status,
            last_error=error,
            chunking_strategy=StaticStrategy(_strategy.decode(stored.strategy).static or _AUTO),
            attributes=_attributes.decode(stored.attributes),
        )


class VectorStoreFileList(ObjectList[VectorStoreFile], frozen=True):
    pass


class DeletedVectorStoreFile(
    msgspec.Struct, frozen=True, tag_field="object", tag="vector_store.file.deleted"
):
    id: str
    deleted: bool = True


class FileBatch(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="vector_store.files_batch"
):
    id: str
    created_at: int
    vector_store_id: str
    status: Literal["in_progress", "completed", "cancelled", "failed"]
    file_counts: FileCounts

    @classmethod
    def of(cls, stored: StoredFileBatch) -> "FileBatch":
        counts = stored.counts
        status: Literal["in_progress", "completed", "cancelled", "failed"] = "completed"
        if stored.is_cancelled:
            status = "cancelled"
        elif counts.in_progress:
            status = "in_progress"
        elif counts.failed and counts.failed == counts.total:
            status = "failed"
        return cls(
            id=stored.id,
            created_at=int(stored.created_at),
            vector_store_id=stored.store_id,
            status=status,
            file_counts=FileCounts.of(counts),
        )


class TextContent(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class FileContent(
    msgspec.Struct, frozen=True, tag_field="object", tag="vector_store.file_content.page"
):
    data: list[TextContent]
    has_more: bool = False
    next_page: str | None = None


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    file_id: str
    filename: str
    score: float
    attributes: dict[str, Attribute]
    content: list[TextContent]

    @classmethod
    def of(cls, hit: FileHit) -> "SearchResult":
        return cls(
            file_id=hit.file_id,
            filename=hit.filename,
            score=hit.score,
            attributes=hit.attributes,
            content=[TextContent(hit.text)],
        )


class SearchResults(
    msgspec.Struct, frozen=True, tag_field="object", tag="vector_store.search_results.page"
):
    search_query: list[str]
    data: list[SearchResult]
    has_more: bool = False
    next_page: str | None = None


def join_chunks(chunks: list[StoredChunk], end: int) -> tuple[str, int]:
    """Returns the text of chunks in order without their overlaps, and where it ends.

    `end` is the end of the text before them.
    """
    pieces = []
    for chunk in chunks:
        pieces.append(chunk.text[max(end - chunk.start, 0) :])
        end = max(end, chunk.start + len(chunk.text))
    return "".join(pieces), end
