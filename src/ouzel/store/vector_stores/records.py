"""Defines the records of vector stores; objects of the API are JSON bytes in them."""

from enum import StrEnum
from typing import Literal

import msgspec


class FileStatus(StrEnum):
    """The status of a file in a vector store."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ErrorCode = Literal["server_error", "unsupported_file", "invalid_file"]


class NewVectorStore(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    key_id: str | None  # the API key that owns it; None on a server without keys
    name: str
    description: str | None
    metadata: bytes
    model: str  # the first name of the model that makes its vectors
    expires_after_days: int | None  # days after the last use; None: never


class FileCounts(msgspec.Struct, frozen=True, kw_only=True):
    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        return self.in_progress + self.completed + self.failed + self.cancelled


class StoredVectorStore(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    id: str
    name: str
    description: str | None
    metadata: bytes
    model: str
    expires_after_days: int | None
    created_at: float  # unix seconds
    last_active_at: float
    is_expired: bool
    counts: FileCounts
    usage_bytes: int


class StoreChange(msgspec.Struct, frozen=True, kw_only=True):
    """New values of a vector store."""

    name: str
    metadata: bytes
    expires_after_days: int | None


class CursorRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for a page of a list in the order of its objects' numbers."""

    limit: int
    is_ascending: bool
    after: str | None = None  # the page begins behind this id
    before: str | None = None  # the page ends before this id


class VectorStorePage(msgspec.Struct, frozen=True):
    stores: tuple[StoredVectorStore, ...]
    has_more: bool


class NewVectorFile(msgspec.Struct, frozen=True, kw_only=True):
    file_id: str
    filename: str
    attributes: bytes
    strategy: bytes


class StoredVectorFile(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    store_id: str
    file_id: str
    filename: str
    batch_id: str | None
    status: FileStatus
    attributes: bytes
    strategy: bytes
    error_code: ErrorCode | None
    error_message: str | None
    usage_bytes: int
    created_at: float

    @property
    def id(self) -> str:
        """Returns the id for clients: a file keeps the id of its upload."""
        return self.file_id


class VectorFilePage(msgspec.Struct, frozen=True):
    files: tuple[StoredVectorFile, ...]
    has_more: bool


class StoredFileBatch(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    store_id: str
    created_at: float
    is_cancelled: bool
    counts: FileCounts


class IndexJob(msgspec.Struct, frozen=True, kw_only=True):
    """A file that this server has to index."""

    number: int
    store_id: str
    file_id: str
    key_id: str | None
    filename: str
    strategy: bytes
    model: str
    num_tries: int  # including this one


class NewChunk(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    start: int  # characters of the file before the chunk
    heading: str
    text: str
    words: str  # the text for the index of words


class VectorPart(msgspec.Struct, frozen=True):
    """Vectors of chunks of one file."""

    file_number: int
    positions: bytes  # the chunk of each vector, int32
    vectors: bytes  # float16


class SearchedFile(msgspec.Struct, frozen=True):
    number: int
    file_id: str
    filename: str
    attributes: bytes


class ChunkPlace(msgspec.Struct, frozen=True):
    file_number: int
    position: int


class StoredChunk(msgspec.Struct, frozen=True, kw_only=True):
    file_number: int
    position: int
    start: int
    heading: str
    text: str
