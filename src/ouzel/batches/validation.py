"""Validates the input file of a batch and stores its lines."""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial

import msgspec

from ouzel.batches.input_lines import InputLines, LineFault
from ouzel.batches.limits import MAX_INPUT_BYTES
from ouzel.batches.line_app import BatchFiles, LineApp
from ouzel.errors import OuzelError
from ouzel.store.batches.base import BatchStore
from ouzel.store.batches.records import BatchStatus, NewLine, StoredBatch

_PIECE_BYTES = 2**20
_GROUP = 1000  # lines of one transaction


async def validate_batch(
    batch: StoredBatch, *, app: LineApp, files: BatchFiles, store: BatchStore
) -> None:
    """Reads the input file; the batch is in progress afterwards, or has failed.

    Does nothing if another server validates the batch. Raises StoreUnavailable.
    """
    if not await store.claim(batch.id, [BatchStatus.VALIDATING]):
        return
    await store.clear_lines(batch.id)  # an earlier server may have died in the middle
    reader = InputLines(batch.endpoint, app.find_model)
    try:
        if await _store_lines(batch, reader, files=files, store=store):
            assert reader.model is not None
            await store.start(batch.id, model=reader.model, num_lines=reader.num_lines)
    except _NotValid as error:
        await store.fail(batch.id, msgspec.json.encode(error.faults))


class _NotValid(Exception):
    def __init__(self, faults: list[LineFault]) -> None:
        super().__init__()
        self.faults = faults


async def _store_lines(
    batch: StoredBatch, reader: InputLines, *, files: BatchFiles, store: BatchStore
) -> bool:
    """Stores the lines of the file; returns False if the batch was cancelled meanwhile.

    Raises _NotValid.
    """
    assert batch.input_file_id is not None
    num_stored = 0
    try:
        async for piece in _joined(batch.input_file_id, batch.key_id, files):
            lines = await asyncio.to_thread(partial(reader.feed, piece))
            if not await _add(batch, num_stored, lines, store):
                return False
            num_stored += len(lines)
            if reader.is_broken:
                break
        lines = [] if reader.is_broken else reader.finish()
    except OuzelError as error:
        if not error.is_clients:
            raise
        fault = LineFault(code="invalid_file", message=str(error), param="input_file_id")
        raise _NotValid([fault]) from error
    if reader.faults:
        raise _NotValid(reader.faults)
    return await _add(batch, num_stored, lines, store)


async def _joined(
    file_id: str, key_id: str | None, files: BatchFiles
) -> AsyncGenerator[bytes, None]:
    """Yields the file in pieces of about a megabyte. Raises _NotValid for too long a file."""
    piece = bytearray()
    num_bytes = 0
    async for part in files.read(file_id, key_id):
        piece += part
        num_bytes += len(part)
        if num_bytes > MAX_INPUT_BYTES:
            message = f"the input file must have at most {MAX_INPUT_BYTES} bytes"
            raise _NotValid([LineFault(code="file_too_large", message=message)])
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


async def _add(
    batch: StoredBatch, num_stored: int, lines: list[NewLine], store: BatchStore
) -> bool:
    for begin in range(0, len(lines), _GROUP):
        group = lines[begin : begin + _GROUP]
        if not await store.add_lines(batch.id, num_stored + begin, group):
            return False
    return True
