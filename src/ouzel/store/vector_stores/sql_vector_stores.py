"""Implements vector stores on SQLite or Postgres; `base.py` describes each method."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from ouzel.store.database import Database
from ouzel.store.errors import VectorStoresFull
from ouzel.store.vector_stores import file_rows, index_rows, store_rows
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
from ouzel.store.vector_stores.room import SizeLimits

P = ParamSpec("P")
T = TypeVar("T")


class SqlVectorStores:
    def __init__(
        self,
        database: Database,
        *,
        server_id: str,
        lease_s: float,
        may_take: Callable[[], Awaitable[bool]],
        limits: SizeLimits,
    ) -> None:
        """`may_take` tells whether leases can be trusted now (`clock_jumps`)."""
        self._database = database
        self._server_id = server_id
        self._lease_s = lease_s
        self._may_take = may_take
        self._limits = limits

    async def create(
        self, new: NewVectorStore, files: Sequence[NewVectorFile]
    ) -> StoredVectorStore:
        return await self._find_room(_create, new, files, limits=self._limits)

    async def get(self, store_id: str, key_id: str | None) -> StoredVectorStore | None:
        return await self._database.read(store_rows.get, store_id, key_id)

    async def page(self, key_id: str | None, page: CursorRequest) -> VectorStorePage:
        return await self._database.read(store_rows.page, key_id, page)

    async def change(
        self, store_id: str, key_id: str | None, change: StoreChange
    ) -> StoredVectorStore:
        return await self._database.write(store_rows.change, store_id, key_id, change)

    async def touch(self, store_ids: Collection[str]) -> None:
        await self._database.write(store_rows.touch, store_ids)

    async def delete(self, store_id: str, key_id: str | None) -> bool:
        is_deleted = await self._database.delete(store_rows.remove, store_id, key_id)
        await self._free_waste()
        return is_deleted

    async def add_files(
        self,
        store_id: str,
        key_id: str | None,
        files: Sequence[NewVectorFile],
        *,
        batch_id: str | None = None,
        max_files: int,
    ) -> list[StoredVectorFile]:
        return await self._find_room(
            file_rows.add,
            store_id,
            key_id,
            files,
            batch_id=batch_id,
            max_files=max_files,
            limits=self._limits,
        )

    async def file(
        self, store_id: str, key_id: str | None, file_id: str
    ) -> StoredVectorFile | None:
        return await self._database.read(file_rows.get, store_id, key_id, file_id)

    async def file_page(
        self,
        store_id: str,
        key_id: str | None,
        page: CursorRequest,
        *,
        status: FileStatus | None = None,
        batch_id: str | None = None,
    ) -> VectorFilePage:
        return await self._database.read(
            file_rows.page, store_id, key_id, page, status=status, batch_id=batch_id
        )

    async def set_attributes(
        self, store_id: str, key_id: str | None, file_id: str, attributes: bytes
    ) -> StoredVectorFile | None:
        return await self._database.write(
            file_rows.set_attributes, store_id, key_id, file_id, attributes
        )

    async def remove_file(self, store_id: str, key_id: str | None, file_id: str) -> bool:
        is_removed = await self._database.delete(file_rows.remove, store_id, key_id, file_id)
        await self._free_waste()
        return is_removed

    async def batch(
        self, store_id: str, key_id: str | None, batch_id: str
    ) -> StoredFileBatch | None:
        return await self._database.read(file_rows.get_batch, store_id, key_id, batch_id)

    async def cancel_batch(
        self, store_id: str, key_id: str | None, batch_id: str
    ) -> StoredFileBatch | None:
        batch = await self._database.write(file_rows.cancel_batch, store_id, key_id, batch_id)
        await self._free_waste()
        return batch

    async def take_job(self) -> IndexJob | None:
        if not await self._database.read(index_rows.has_jobs):
            return None
        takes_dead = await self._may_take()
        return await self._database.write(
            index_rows.take_job, self._server_id, self._lease_s, takes_dead=takes_dead
        )

    async def add_chunks(
        self,
        file_number: int,
        part: int,
        chunks: Sequence[NewChunk],
        *,
        positions: bytes,
        vectors: bytes,
    ) -> bool:
        return await self._find_room(
            index_rows.add_chunks,
            self._server_id,
            file_number,
            part,
            chunks,
            positions=positions,
            vectors=vectors,
            limits=self._limits,
        )

    async def complete(self, file_number: int) -> bool:
        return await self._database.write(
            index_rows.end, self._server_id, file_number, FileStatus.COMPLETED
        )

    async def fail(self, file_number: int, code: ErrorCode, message: str) -> None:
        await self._database.write(
            index_rows.end,
            self._server_id,
            file_number,
            FileStatus.FAILED,
            error_code=code,
            error_message=message,
        )
        await self._free_waste()

    async def release(self, file_number: int) -> None:
        await self._database.write(index_rows.release, self._server_id, file_number)

    async def searched_files(self, store_ids: Collection[str]) -> dict[str, list[SearchedFile]]:
        return await self._database.read(index_rows.searched_files, store_ids)

    async def vector_sizes(self, file_numbers: Collection[int]) -> dict[int, int]:
        return await self._database.read(index_rows.vector_sizes, file_numbers)

    async def vectors(self, file_numbers: Collection[int]) -> list[VectorPart]:
        return await self._database.read(index_rows.vectors, file_numbers)

    async def find_words(
        self,
        store_ids: Collection[str],
        words: Sequence[str],
        file_numbers: Collection[int] | None,
        *,
        limit: int,
    ) -> list[ChunkPlace]:
        return await self._database.read(
            index_rows.find_words, store_ids, words, file_numbers, limit
        )

    async def chunks(self, places: Collection[ChunkPlace]) -> list[StoredChunk]:
        return await self._database.read(index_rows.chunks, places)

    async def chunks_of_file(
        self, file_number: int, *, first: int, limit: int
    ) -> list[StoredChunk]:
        return await self._database.read(index_rows.chunks_of_file, file_number, first, limit)

    async def sweep(self) -> int:
        num_dropped = 0
        while num := await self._database.delete(store_rows.drop_due):
            num_dropped += num
        return num_dropped + await self._free_waste()

    async def _find_room(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Runs a transaction that needs room, at need after a sweep. Raises VectorStoresFull."""
        try:
            return await self._database.write(function, *args, **kwargs)
        except VectorStoresFull:
            # Deleted uploads and expired vector stores count until they are swept.
            if not await self.sweep():
                raise
        return await self._database.write(function, *args, **kwargs)

    async def _free_waste(self) -> int:
        """Frees the chunks of deleted files, a few in each transaction; returns their number."""
        num_freed = 0
        while num := await self._database.delete(index_rows.free_some):
            num_freed += num
        return num_freed


def _create(
    connection: Connection,
    new: NewVectorStore,
    files: Sequence[NewVectorFile],
    *,
    limits: SizeLimits,
) -> StoredVectorStore:
    store_rows.create(connection, new)
    if files:
        file_rows.add(
            connection,
            new.id,
            new.key_id,
            files,
            batch_id=None,
            max_files=len(files),
            limits=limits,
        )
    return store_rows.require(connection, new.id, new.key_id)
