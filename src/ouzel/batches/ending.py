"""Ends batches: writes the files with the results and sets the final status."""

import secrets
from collections.abc import AsyncGenerator, Collection
from contextlib import suppress

from ouzel.batches.line_app import BatchFiles
from ouzel.batches.results import write_openai_line
from ouzel.store.batches.base import BatchStore
from ouzel.store.batches.records import BatchStatus, LineEnd, StoredBatch
from ouzel.store.errors import StoreUnavailable

_PAGE = 200  # results that are in memory at once
_FAILED = (LineEnd.ERRORED, LineEnd.CANCELLED, LineEnd.EXPIRED)


async def end_batch(batch: StoredBatch, *, files: BatchFiles, store: BatchStore) -> bool:
    """Ends a batch that is being finalized or cancelled, or whose time is over.

    Returns False if another server does it, or if another server still runs lines of the batch.
    The files become visible in the transaction that closes the batch: a server that goes on after
    a crash writes files of its own. Raises StoreUnavailable.
    """
    if not await store.claim(batch.id, [batch.status]):
        return False
    status = BatchStatus.COMPLETED
    if batch.status is not BatchStatus.FINALIZING:
        is_cancelled = batch.status is BatchStatus.CANCELLING
        status = BatchStatus.CANCELLED if is_cancelled else BatchStatus.EXPIRED
        end = LineEnd.CANCELLED if is_cancelled else LineEnd.EXPIRED
        if batch.in_progress_at is None:
            await store.clear_lines(batch.id)  # the validation was interrupted
        if await store.end_open(batch.id, end):
            return False
    result_files = _ResultFiles(batch, files, store)
    if batch.dialect == "openai":
        await result_files.write()
    is_closed = await store.close_batch(
        batch.id,
        status,
        output_file_id=result_files.output_file_id,
        error_file_id=result_files.error_file_id,
        keeps_lines=batch.dialect == "anthropic",
    )
    if not is_closed:  # another server has taken the batch over
        await result_files.drop()
    return is_closed


class _ResultFiles:
    """The files of a batch, which are invisible until the batch is closed."""

    def __init__(self, batch: StoredBatch, files: BatchFiles, store: BatchStore) -> None:
        self.output_file_id: str | None = None  # None: no line has such a result
        self.error_file_id: str | None = None
        self._batch = batch
        self._files = files
        self._store = store
        self._begun: list[str] = []

    async def write(self) -> None:
        try:
            self.output_file_id = await self._write("output", [LineEnd.SUCCEEDED])
            self.error_file_id = await self._write("error", _FAILED)
        except BaseException:
            await self.drop()
            raise

    async def drop(self) -> None:
        """Deletes the files. The store's sweep deletes files that are left behind."""
        with suppress(StoreUnavailable):
            for file_id in self._begun:
                await self._files.drop(file_id)

    async def _write(self, kind: str, ends: Collection[LineEnd]) -> str | None:
        if not await self._store.results(self._batch.id, after=-1, limit=1, ends=ends):
            return None
        file_id = f"file-{secrets.token_hex(16)}"
        self._begun.append(file_id)
        await self._files.write(
            file_id,
            self._batch.key_id,
            filename=f"{self._batch.id}_{kind}.jsonl",
            pieces=_pages(self._batch, ends, self._store),
        )
        return file_id


async def _pages(
    batch: StoredBatch, ends: Collection[LineEnd], store: BatchStore
) -> AsyncGenerator[bytes, None]:
    after = -1
    while results := await store.results(batch.id, after=after, limit=_PAGE, ends=ends):
        after = results[-1].position
        yield b"".join(map(write_openai_line, results))
