"""Implements the stored batches on SQLite or Postgres; `base.py` describes each method."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from ouzel.store.batches import batch_rows, line_rows
from ouzel.store.batches.records import (
    BatchPage,
    BatchPageRequest,
    BatchStatus,
    Dialect,
    Line,
    LineEnd,
    LineResult,
    NewBatch,
    NewLine,
    StoredBatch,
    StoredResult,
)
from ouzel.store.database import Database

_MAX_TAKEN = 1000


class SqlBatchStore:
    def __init__(
        self,
        database: Database,
        *,
        server_id: str,
        lease_s: float,
        may_take: Callable[[], Awaitable[bool]],
    ) -> None:
        """`may_take` tells whether leases can be trusted now (`clock_jumps`)."""
        self._database = database
        self._server_id = server_id
        self._lease_s = lease_s
        self._may_take = may_take

    async def add(
        self, new: NewBatch, lines: Sequence[NewLine] = (), *, model: str | None = None
    ) -> StoredBatch:
        return await self._database.write(batch_rows.add, new, lines, model)

    async def get(self, batch_id: str, key_id: str | None, dialect: Dialect) -> StoredBatch | None:
        return await self._database.read(batch_rows.get, batch_id, key_id, dialect)

    async def page(
        self, key_id: str | None, dialect: Dialect, page: BatchPageRequest
    ) -> BatchPage | None:
        return await self._database.read(batch_rows.page, key_id, dialect, page)

    async def count_unfinished(self, key_id: str | None) -> int:
        return await self._database.read(batch_rows.count_unfinished, key_id)

    async def cancel(
        self, batch_id: str, key_id: str | None, dialect: Dialect
    ) -> StoredBatch | None:
        return await self._database.write(batch_rows.cancel, batch_id, key_id, dialect)

    async def delete(self, batch_id: str, key_id: str | None, dialect: Dialect) -> bool:
        return await self._database.delete(batch_rows.remove, batch_id, key_id, dialect)

    async def results(
        self, batch_id: str, *, after: int, limit: int, ends: Collection[LineEnd] = ()
    ) -> list[StoredResult]:
        return await self._database.read(line_rows.results, batch_id, after, limit, ends)

    async def unfinished(self) -> list[StoredBatch]:
        return await self._database.read(batch_rows.unfinished)

    async def claim(self, batch_id: str, statuses: Collection[BatchStatus]) -> bool:
        takes_dead = await self._may_take()
        return await self._database.write(
            batch_rows.claim,
            self._server_id,
            self._lease_s,
            batch_id,
            statuses,
            takes_dead=takes_dead,
        )

    async def clear_lines(self, batch_id: str) -> None:
        await self._database.delete(batch_rows.clear_lines, self._server_id, batch_id)

    async def add_lines(self, batch_id: str, first: int, lines: Sequence[NewLine]) -> bool:
        return await self._database.write(
            line_rows.add_to_validated, self._server_id, batch_id, first, lines
        )

    async def start(self, batch_id: str, *, model: str, num_lines: int) -> bool:
        return await self._database.write(
            batch_rows.start, self._server_id, batch_id, model, num_lines
        )

    async def fail(self, batch_id: str, errors: bytes) -> bool:
        return await self._database.delete(batch_rows.fail, self._server_id, batch_id, errors)

    async def take_lines(self, batch_id: str, limit: int) -> list[Line]:
        takes_dead = await self._may_take()
        return await self._database.write(
            line_rows.take,
            self._server_id,
            self._lease_s,
            batch_id,
            min(limit, _MAX_TAKEN),
            takes_dead=takes_dead,
        )

    async def finish_lines(self, batch_id: str, results: Sequence[LineResult]) -> int:
        return await self._database.write(line_rows.finish, self._server_id, batch_id, results)

    async def release_lines(self, batch_id: str, positions: Collection[int]) -> None:
        await self._database.write(line_rows.release, self._server_id, batch_id, positions)

    async def keep_lines(self, batch_id: str, positions: Collection[int]) -> None:
        await self._database.write(line_rows.keep, self._server_id, batch_id, positions)

    async def begin_finalizing(self, batch_id: str) -> bool:
        return await self._database.write(
            batch_rows.begin_finalizing, self._server_id, self._lease_s, batch_id
        )

    async def end_open(self, batch_id: str, end: LineEnd) -> int:
        takes_dead = await self._may_take()
        return await self._database.write(
            line_rows.end_open, self._server_id, batch_id, end, takes_dead=takes_dead
        )

    async def close_batch(
        self,
        batch_id: str,
        status: BatchStatus,
        *,
        output_file_id: str | None = None,
        error_file_id: str | None = None,
        keeps_lines: bool,
    ) -> bool:
        return await self._database.delete(
            batch_rows.close,
            self._server_id,
            batch_id,
            status,
            (output_file_id, error_file_id),
            keeps_lines=keeps_lines,
        )

    async def sweep(self, max_age_s: float) -> int:
        num_deleted = 0
        while some := await self._database.delete(batch_rows.delete_old, max_age_s):
            num_deleted += some
        return num_deleted
