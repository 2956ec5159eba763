"""Defines the interface of the stored batches; importing it loads no database library.

1.  A line is run by one server at a time: `take_lines` makes this server its owner. The owner must
    have a lease (`Store.beat`); lines of a server without a lease may be taken by others.
2.  The result of a line is written once, by its owner: `finish_lines` ignores lines that have ended
    or have another owner. A line that its dead owner ran runs again.
3.  The validation of a batch and the writing of its files belong to one server too (`claim`).
4.  A key never sees or changes the batches of another key.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

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


class BatchStore(Protocol):
    # Clients

    async def add(
        self, new: NewBatch, lines: Sequence[NewLine] = (), *, model: str | None = None
    ) -> StoredBatch:
        """Adds a batch. With lines, the batch is in progress at once, for this model."""
        ...

    async def get(self, batch_id: str, key_id: str | None, dialect: Dialect) -> StoredBatch | None:
        """Returns the batch, or None if the key has no batch with this id."""
        ...

    async def page(
        self, key_id: str | None, dialect: Dialect, page: BatchPageRequest
    ) -> BatchPage | None:
        """Returns batches of a key, the newest first; None for an unknown `after` or `before`."""
        ...

    async def count_unfinished(self, key_id: str | None) -> int:
        """Counts the batches of a key that have not ended."""
        ...

    async def cancel(
        self, batch_id: str, key_id: str | None, dialect: Dialect
    ) -> StoredBatch | None:
        """Begins to cancel a batch that is validated or runs; another one stays as it is."""
        ...

    async def delete(self, batch_id: str, key_id: str | None, dialect: Dialect) -> bool:
        """Deletes a batch that has ended, with its results; returns whether it was deleted."""
        ...

    async def results(
        self, batch_id: str, *, after: int, limit: int, ends: Collection[LineEnd] = ()
    ) -> list[StoredResult]:
        """Returns ended lines behind the position `after` in order; with `ends` only such ends."""
        ...

    # Servers

    async def unfinished(self) -> list[StoredBatch]:
        """Returns the batches of all keys that have not ended, the oldest first."""
        ...

    async def claim(self, batch_id: str, statuses: Collection[BatchStatus]) -> bool:
        """Makes this server the owner of a batch in one of the statuses.

        Returns False if the batch has another status, or another owner with a lease.
        """
        ...

    async def clear_lines(self, batch_id: str) -> None:
        """Deletes the lines of an interrupted validation, if this server owns the batch."""
        ...

    async def add_lines(self, batch_id: str, first: int, lines: Sequence[NewLine]) -> bool:
        """Adds lines from position `first` on to a batch of this server that is validated.

        Returns False if the batch no longer belongs to this server, or was cancelled.
        """
        ...

    async def start(self, batch_id: str, *, model: str, num_lines: int) -> bool:
        """Ends the validation of a batch of this server: it is in progress now."""
        ...

    async def fail(self, batch_id: str, errors: bytes) -> bool:
        """Ends a batch whose validation has found faults."""
        ...

    async def take_lines(self, batch_id: str, limit: int) -> list[Line]:
        """Takes open lines of a batch in progress, the first ones, and owns them."""
        ...

    async def finish_lines(self, batch_id: str, results: Sequence[LineResult]) -> int:
        """Writes the results of lines that this server owns; returns how many were written."""
        ...

    async def release_lines(self, batch_id: str, positions: Collection[int]) -> None:
        """Gives up the ownership of open lines, so that any server can take them."""
        ...

    async def keep_lines(self, batch_id: str, positions: Collection[int]) -> None:
        """Gives up the ownership of all other lines of this server."""
        ...

    async def begin_finalizing(self, batch_id: str) -> bool:
        """Claims a batch in progress without open lines, to write its files."""
        ...

    async def end_open(self, batch_id: str, end: LineEnd) -> int:
        """Ends the open lines of a batch that no other living server runs.

        Returns the number of lines that are still open.
        """
        ...

    async def close_batch(
        self,
        batch_id: str,
        status: BatchStatus,
        *,
        output_file_id: str | None = None,
        error_file_id: str | None = None,
        keeps_lines: bool,
    ) -> bool:
        """Ends a batch of this server with a final status, and makes its files visible.

        Returns False, and leaves the files invisible, if another server owns the batch.
        """
        ...

    async def sweep(self, max_age_s: float) -> int:
        """Deletes batches that ended longer ago than `max_age_s`; returns their number."""
        ...
