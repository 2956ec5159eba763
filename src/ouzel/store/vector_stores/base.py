"""Defines the interface of stored vector stores; importing it loads no database library.

1.  The rules of `store.base` hold: each method is one transaction, and the vector stores of another
    API key do not exist. Methods that take a `store_id` and a `key_id` raise VectorStoreNotFound.
2.  A file is found by searches when it is completed. Its chunks are never changed after that.
3.  A file in progress is indexed by one server at a time, its owner, which must have a lease
    (`Store.beat`). `take_job` takes files without an owner, files of servers without a lease, and
    files of this server, which indexes one file at a time.
4.  Deleted files vanish at once; `sweep` frees their chunks in short transactions.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from ouzel.store.vector_stores.records import (
    ChunkPlace,
    CursorRequest,
    ErrorCode,
    FileStatus,
    IndexJob,
    NewChunk,
    NewVectorFile,
    NewVectorStore,
    SearchedFile,
    StoreChange,
    StoredChunk,
    StoredFileBatch,
    StoredVectorFile,
    StoredVectorStore,
    VectorFilePage,
    VectorPart,
    VectorStorePage,
)


class VectorStores(Protocol):
    # Vector stores

    async def create(
        self, new: NewVectorStore, files: Sequence[NewVectorFile]
    ) -> StoredVectorStore:
        """Adds a vector store; its files are in progress. Raises VectorStoresFull for files."""
        ...

    async def get(self, store_id: str, key_id: str | None) -> StoredVectorStore | None:
        """Returns the vector store, or None if the API key has none with this id."""
        ...

    async def page(self, key_id: str | None, page: CursorRequest) -> VectorStorePage:
        """Returns a page of vector stores. Raises VectorStoreNotFound for an unknown cursor."""
        ...

    async def change(
        self, store_id: str, key_id: str | None, change: StoreChange
    ) -> StoredVectorStore:
        """Gives a vector store new values and renews its time."""
        ...

    async def touch(self, store_ids: Collection[str]) -> None:
        """Notes that vector stores were used, which renews their time."""
        ...

    async def delete(self, store_id: str, key_id: str | None) -> bool:
        """Deletes a vector store; returns whether it existed. Its uploaded files stay."""
        ...

    # Files

    async def add_files(
        self,
        store_id: str,
        key_id: str | None,
        files: Sequence[NewVectorFile],
        *,
        batch_id: str | None = None,
        max_files: int,
    ) -> list[StoredVectorFile]:
        """Adds files, which are in progress then; a file that is there is indexed again.

        Creates the batch with `batch_id`. Raises VectorStoreFull above `max_files`, and
        VectorStoresFull.
        """
        ...

    async def file(
        self, store_id: str, key_id: str | None, file_id: str
    ) -> StoredVectorFile | None:
        """Returns the file, or None if the vector store has no such file."""
        ...

    async def file_page(
        self,
        store_id: str,
        key_id: str | None,
        page: CursorRequest,
        *,
        status: FileStatus | None = None,
        batch_id: str | None = None,
    ) -> VectorFilePage:
        """Returns a page of files. Raises VectorFileNotFound for an unknown cursor."""
        ...

    async def set_attributes(
        self, store_id: str, key_id: str | None, file_id: str, attributes: bytes
    ) -> StoredVectorFile | None:
        """Replaces the attributes; returns None if the vector store has no such file."""
        ...

    async def remove_file(self, store_id: str, key_id: str | None, file_id: str) -> bool:
        """Removes a file from a vector store; returns whether the file was there."""
        ...

    async def batch(
        self, store_id: str, key_id: str | None, batch_id: str
    ) -> StoredFileBatch | None:
        """Returns the batch, or None if the vector store has no such batch."""
        ...

    async def cancel_batch(
        self, store_id: str, key_id: str | None, batch_id: str
    ) -> StoredFileBatch | None:
        """Cancels the files of a batch that are in progress, and frees their chunks."""
        ...

    # Indexing

    async def take_job(self) -> IndexJob | None:
        """Takes the oldest file in progress that no living server indexes, and owns it.

        The chunks of an earlier try are dropped.
        """
        ...

    async def add_chunks(
        self,
        file_number: int,
        part: int,
        chunks: Sequence[NewChunk],
        *,
        positions: bytes,
        vectors: bytes,
    ) -> bool:
        """Adds chunks and their vectors to a file that this server indexes.

        Returns False if the file was deleted, cancelled, or taken by another server. Raises
        VectorStoresFull.
        """
        ...

    async def complete(self, file_number: int) -> bool:
        """Ends the indexing of a file of this server: searches find it now."""
        ...

    async def fail(self, file_number: int, code: ErrorCode, message: str) -> None:
        """Ends the indexing of a file of this server, and frees its chunks."""
        ...

    async def release(self, file_number: int) -> None:
        """Gives up a file, so that any server indexes it. The try does not count."""
        ...

    # Searching

    async def searched_files(self, store_ids: Collection[str]) -> dict[str, list[SearchedFile]]:
        """Returns the completed files of each vector store, in order."""
        ...

    async def vector_sizes(self, file_numbers: Collection[int]) -> dict[int, int]:
        """Returns the bytes of the vectors of each completed file; empty files are missing."""
        ...

    async def vectors(self, file_numbers: Collection[int]) -> list[VectorPart]:
        """Returns the vectors of completed files; files that were deleted have none."""
        ...

    async def find_words(
        self,
        store_ids: Collection[str],
        words: Sequence[str],
        file_numbers: Collection[int] | None,
        *,
        limit: int,
    ) -> list[ChunkPlace]:
        """Returns the chunks that match any of the words best, the best first.

        With `file_numbers`, only chunks of these files.
        """
        ...

    async def chunks(self, places: Collection[ChunkPlace]) -> list[StoredChunk]:
        """Returns chunks in any order; chunks of deleted files are missing."""
        ...

    async def chunks_of_file(
        self, file_number: int, *, first: int, limit: int
    ) -> list[StoredChunk]:
        """Returns chunks of a file in order, from position `first` on."""
        ...

    async def sweep(self) -> int:
        """Frees deleted files and the contents of expired vector stores; returns a count."""
        ...
