"""Ends batches: writes the files with the results and sets the final status."""

from collections.abc import AsyncGenerator, Collection

from ouzel.batches.line_app import BatchFiles
from ouzel.batches.results import write_openai_line
from ouzel.store.batches.base import BatchStore
from ouzel.store.batches.records import BatchStatus, LineEnd, StoredBatch

_PAGE = 200  # results that are in memory at once
_FAILED = (LineEnd.ERRORED, LineEnd.CANCELLED, LineEnd.EXPIRED)


async def end_batch(batch: StoredBatch, *, files: BatchFiles, store: BatchStore) -> bool:
    """Ends a batch that is being finalized or cancelled, or whose time is over.

    Returns False if another server does it, or if another server still runs lines of the batch.
    A server that goes on after a crash writes the same files again. Raises StoreUnavailable.
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
    output_file_id = error_file_id = None
    if batch.dialect == "openai":
        output_file_id = await _write(batch, "output", [LineEnd.SUCCEEDED], files, store)
        error_file_id = await _write(batch, "error", _FAILED, files, store)
    return await store.close_batch(
        batch.id,
        status,
        output_file_id=output_file_id,
        error_file_id=error_file_id,
        keeps_lines=batch.dialect == "anthropic",
    )


async def _write(
    batch: StoredBatch,
    kind: str,
    ends: Collection[LineEnd],
    files: BatchFiles,
    store: BatchStore,
) -> str | None:
    """Writes a file with the results that have these ends; returns its id, None without such."""
    if not await store.results(batch.id, after=-1, limit=1, ends=ends):
        return None
    # The id follows from the batch, so that a second try replaces the file of the first.
    file_id = f"file-{batch.id.removeprefix('batch_')}-{kind}"
    await files.write(
        file_id,
        batch.key_id,
        filename=f"{batch.id}_{kind}.jsonl",
        pieces=_pages(batch, ends, store),
        expires_after_s=batch.output_expires_after_s,
    )
    return file_id


async def _pages(
    batch: StoredBatch, ends: Collection[LineEnd], store: BatchStore
) -> AsyncGenerator[bytes, None]:
    after = -1
    while results := await store.results(batch.id, after=after, limit=_PAGE, ends=ends):
        after = results[-1].position
        yield b"".join(map(write_openai_line, results))
